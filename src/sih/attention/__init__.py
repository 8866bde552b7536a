"""Attention of any model: measured, read by head, compared, changed."""
