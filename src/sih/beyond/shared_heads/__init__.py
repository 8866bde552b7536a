"""Heads that several lags share, and what fewer of them lose (docs/beyond.md)."""
