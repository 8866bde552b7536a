"""What relative positions change (docs/concepts/relative-positions.md)."""
