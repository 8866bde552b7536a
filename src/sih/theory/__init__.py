"""Studies Claim 1 of the paper: exact expectations, Monte Carlo, a falsifier, the proven cases, and error rates."""
