"""When copying, a selective head and the circuit appear in training (docs/training.md)."""
