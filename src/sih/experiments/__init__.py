"""Computing: a module for each experiment, with its configuration, a pure `compute` and a table of what it found."""
