"""Reference predictors."""
