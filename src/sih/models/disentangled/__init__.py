"""Holds the disentangled transformer: its equations, its fast path, and the path from written blocks."""
