"""Models of `sih` in the formats of other libraries, and back."""
