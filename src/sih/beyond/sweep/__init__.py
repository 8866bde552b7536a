"""Many training runs from one file: on this machine's cores, or on a Ray cluster."""
