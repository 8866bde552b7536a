"""Ratios against plain implementations, each measured side by side in one run."""
