"""Heads that several lags share, and what fewer of them lose (docs/results/head-counts.md)."""
