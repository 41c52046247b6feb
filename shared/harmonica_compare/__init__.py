"""Comparative evaluations and the ``harmonica`` command."""
