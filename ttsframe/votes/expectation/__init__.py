"""Expected accuracy over all subsets of attempts."""

from __future__ import annotations

from ttsframe.votes.expectation.accuracy import expected_accuracy

__all__ = ["expected_accuracy"]
