"""Settings of all tests: the same examples on every run, however slow the machine."""

from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")
