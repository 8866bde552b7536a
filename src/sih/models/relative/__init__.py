"""Holds the transformer with relative positions: its equations and its fast paths."""
