"""The explorer: a page that shows the circuit at work. `sih explore` serves it without
any network.
"""
