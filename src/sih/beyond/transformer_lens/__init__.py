"""Models of `sih` in other libraries' terms, and back."""
