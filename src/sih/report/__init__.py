"""The report: which statements of the paper hold, with the measurement and the rule of
each.
"""
