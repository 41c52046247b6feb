"""The published LASSO: fast paths over all terms up to a degree."""
