"""Attempts on flat arrays: pools by problem, ballots by answer and budget, and how each selector picks."""
