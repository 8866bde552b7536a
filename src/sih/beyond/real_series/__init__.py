"""Inference of the lag of a real series, with an unknown transition matrix."""
