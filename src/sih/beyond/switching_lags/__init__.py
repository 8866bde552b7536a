"""Sequences with a switching lag (docs/concepts/task-variants.md)."""
