"""Claim 1: its expectations, exact and sampled, what is proved, and its figures, as in `sih.paper`."""
