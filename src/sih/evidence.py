"""What each token says for each hypothesis about the causal structure."""
