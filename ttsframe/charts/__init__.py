"""Charts: one function per question, a table in, an Altair chart out.

Importing this package loads Altair, so `import ttsframe` does not; `tts.charts` loads it on first
use. A chart has its data inside, computes no statistics, and says what it leaves out.
`chart.save("curve.png")` and `chart.save("curve.svg")` need no network.

Examples
--------
>>> import ttsframe as tts
>>> run = tts.simulate_trajectories(50, 8, seed=0, keys=True)
>>> problems = tts.select_answers(run, selectors=["majority_vote", "oracle"], budgets=[1, 8])
>>> tts.charts.scaling_curve(tts.scaling_curve(problems)).title.text
'Accuracy by attempts per problem'
"""

from __future__ import annotations

from ttsframe import _docstrings as _docstrings
from ttsframe.charts._answer_votes import answer_votes
from ttsframe.charts._complexity_curve import complexity_curve
from ttsframe.charts._difficulty_histogram import difficulty_histogram
from ttsframe.charts._label_agreement import label_agreement
from ttsframe.charts._level_bars import level_bars
from ttsframe.charts._level_curves import level_curves
from ttsframe.charts._optimal_curve import optimal_curve
from ttsframe.charts._over_optimization import over_optimization
from ttsframe.charts._pareto_frontier import pareto_frontier
from ttsframe.charts._pruning_regret import pruning_regret
from ttsframe.charts._ranking import ranking
from ttsframe.charts._reduction_comparison import reduction_comparison
from ttsframe.charts._reliability import reliability
from ttsframe.charts._scaling_curve import scaling_curve
from ttsframe.charts._score_distribution import score_distribution
from ttsframe.charts._search_tree import search_tree
from ttsframe.charts._search_width import search_width
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
    "pruning_regret",
    "ranking",
    "reduction_comparison",
    "reliability",
    "scaling_curve",
    "score_distribution",
    "search_tree",
    "search_width",
    "selection_gap",
    "step_profile",
    "step_values",
]
