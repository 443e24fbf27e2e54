"""Charts: one function per question, a tidy frame in, an Altair chart out.

Importing this package loads Altair, which is why ``import ttsframe`` does not import it. A chart
carries its data, computes no statistics, and shows what it leaves out. ``chart.save("curve.png")``
and ``chart.save("curve.svg")`` work without a network.

Examples
--------
>>> from ttsframe import charts
>>> charts.__all__  # doctest: +NORMALIZE_WHITESPACE
['answer_votes', 'complexity_curve', 'difficulty_histogram', 'label_agreement',
'level_bars', 'level_curves', 'optimal_curve', 'over_optimization', 'pareto_frontier', 'reduction_comparison',
'reliability', 'scaling_curve', 'score_distribution', 'selection_gap', 'step_profile',
'step_values']
"""

from __future__ import annotations

from ttsframe.charts._answer_votes import answer_votes
from ttsframe.charts._complexity_curve import complexity_curve
from ttsframe.charts._difficulty_histogram import difficulty_histogram
from ttsframe.charts._label_agreement import label_agreement
from ttsframe.charts._level_bars import level_bars
from ttsframe.charts._level_curves import level_curves
from ttsframe.charts._optimal_curve import optimal_curve
from ttsframe.charts._over_optimization import over_optimization
from ttsframe.charts._pareto_frontier import pareto_frontier
from ttsframe.charts._reduction_comparison import reduction_comparison
from ttsframe.charts._reliability import reliability
from ttsframe.charts._scaling_curve import scaling_curve
from ttsframe.charts._score_distribution import score_distribution
from ttsframe.charts._selection_gap import selection_gap
from ttsframe.charts._step_profile import step_profile
from ttsframe.charts._step_values import step_values

__all__ = [
    "answer_votes",
    "complexity_curve",
    "difficulty_histogram",
    "label_agreement",
    "level_bars",
    "level_curves",
    "optimal_curve",
    "over_optimization",
    "pareto_frontier",
    "reduction_comparison",
    "reliability",
    "scaling_curve",
    "score_distribution",
    "selection_gap",
    "step_profile",
    "step_values",
]
