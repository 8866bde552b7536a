"""The transformer with relative positions: its equations and its fast backends."""
