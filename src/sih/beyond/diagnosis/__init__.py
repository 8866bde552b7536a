"""Diagnosis of a model: the roles of its heads, the quality of its predictions, and the
known circuit it resembles.
"""
