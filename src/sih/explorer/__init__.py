"""The explorer: a page that shows the circuit choose. `sih explore` serves it; nothing is fetched from elsewhere."""
