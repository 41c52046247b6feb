"""Comparative evaluations: `compare` for notebooks, and the ``harmonica`` command."""

from harmonica_compare.notebook import Comparison, compare

__all__ = ["Comparison", "compare"]
