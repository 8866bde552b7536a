"""Heads that several lags share, and the loss with fewer of them
(docs/results/head-counts.md).
"""
