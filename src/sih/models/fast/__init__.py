"""Computes causal attention fast, with its derivatives, for any kind of model."""
