"""Attention of any model: measured, read head by head, compared with the construction,
changed.
"""
