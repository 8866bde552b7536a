"""What each token says for each hypothesis, predictions from it, and how far they are from the truth."""
