"""Keeping: the data of experiments on disk, computed once."""
