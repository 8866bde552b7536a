"""By which way evidence reaches the last layer of a trained model (docs/results/evidence-paths.md)."""
