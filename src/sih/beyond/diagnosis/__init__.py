"""What a model's heads and predictions are like, and which known circuit it resembles."""
