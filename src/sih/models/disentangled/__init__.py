"""The disentangled transformer: its equations and its two faster backends."""
