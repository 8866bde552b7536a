"""Instruments that are run, not imported: what the results in docs/ were measured with."""
