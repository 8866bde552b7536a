"""Reports which statements of the paper hold, each with what was measured and the rule that judged it."""
