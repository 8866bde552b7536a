"""Claim 1 in figures, and what is stated of it: files as in `sih.paper`."""
