"""The two transformers of the paper's Sec. 3, and what one can see of a forward pass."""
