"""Builds the documentation's site from docs/, the docstrings and the notebooks (`make docs`)."""
