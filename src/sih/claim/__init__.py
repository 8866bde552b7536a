"""Claim 1: its expectations, exact and sampled, its proofs, and its figures, as in
`sih.paper`.
"""
