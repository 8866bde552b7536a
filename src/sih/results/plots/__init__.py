"""Drawings of objects: one file per class, which the class names and `plot()` loads."""
