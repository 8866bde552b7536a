"""Sequences whose lag switches (docs/family.md)."""
