"""From evaluated masks to a fit: one fork between exact, Bayesian and LASSO engines."""
