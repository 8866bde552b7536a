"""The explorer: a local page that shows the circuit choose. `sih explore` serves it; nothing is fetched from elsewhere."""
