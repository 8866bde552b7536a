"""The paths of evidence to the last layer of a trained model
(docs/results/evidence-paths.md).
"""
