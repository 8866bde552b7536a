"""Sequences whose lag switches (docs/concepts/task-variants.md)."""
