"""The reproduction report: each statement of the paper with what was measured, and whether it holds."""
