"""The explorer: a page that shows the circuit choose. `sih explore` serves it, and fetches nothing from elsewhere."""
