"""Pictures of explanations (matplotlib, imported when first drawn)."""
