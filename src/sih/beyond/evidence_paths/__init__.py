"""By which way evidence reaches the last layer of a trained model (docs/mechanism.md)."""
