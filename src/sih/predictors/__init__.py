"""Evidence for each hypothesis, predictions from it, and their distance to the
truth.
"""
