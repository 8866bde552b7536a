"""What an experiment is, how its data is kept and drawn, and how a number is judged."""
