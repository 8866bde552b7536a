"""Which lag a series of one's own follows, the transition matrix unknown."""
