"""Holds the standard transformer: its equations and its fast path."""
