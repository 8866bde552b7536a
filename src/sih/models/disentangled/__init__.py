"""The disentangled transformer: its equations, a fast backend, and a backend of few
blocks.
"""
