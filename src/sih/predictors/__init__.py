"""Evidence for each hypothesis, predictions from it, and their KL to the truth."""
