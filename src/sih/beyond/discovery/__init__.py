"""Circuit discovery: scores of edges by several methods, judged on known circuits."""
