"""Edges of a circuit found from outside, scored and judged on circuits that are known."""
