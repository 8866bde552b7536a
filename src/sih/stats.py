"""Means with their standard errors, written once."""
