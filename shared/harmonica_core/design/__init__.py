"""Which masks a fit evaluates."""
