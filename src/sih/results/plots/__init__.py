"""Drawings of objects: a file for each class, which the class names and `plot()` loads."""
