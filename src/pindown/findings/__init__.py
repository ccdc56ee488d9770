"""The answers of an audit, one module per topic.

To add one: write a function with ``@question(...)`` in a module of its topic and name the module here.
The order of the modules is the order in a report, and that in which questions are asked: those that may
have to wait for a compiler come last.
"""

from pindown.findings import architecture, units, weights, lossless, accuracy, norms  # noqa: F401, I001
from pindown.findings import bias_theory, bias_margin, bias_features, bias_rank, bias_kernel  # noqa: F401
from pindown.findings import movement  # noqa: F401
from pindown.findings import inputs, outputs  # noqa: F401
from pindown.findings import bounds  # noqa: F401
from pindown.findings import fourier  # noqa: F401
from pindown.findings import symmetry  # noqa: F401
from pindown.findings import robustness, nearest_class  # noqa: F401
from pindown.findings import regions, fold_distance, dead_zones, near_data, cell_picture, depth  # noqa: F401
from pindown.findings.finding import KINDS, Finding, Hypothesis, Quantity, Table
from pindown.findings.registry import GROUPS, QUESTIONS, Question, question

CATALOGUE: tuple[Question, ...] = tuple(QUESTIONS.values())

__all__ = [
    "CATALOGUE",
    "GROUPS",
    "KINDS",
    "Finding",
    "Hypothesis",
    "Quantity",
    "Question",
    "Table",
    "question",
]
