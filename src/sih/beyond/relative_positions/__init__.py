"""The effect of relative positions (docs/concepts/relative-positions.md)."""
