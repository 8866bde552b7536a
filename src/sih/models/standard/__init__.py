"""The standard transformer: its equations and its fast backend."""
