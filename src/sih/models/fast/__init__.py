"""Fast causal attention, with its derivatives, for any kind of model."""
