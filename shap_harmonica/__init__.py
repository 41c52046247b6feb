"""Placeholder docstring, replaced by the adapter."""
