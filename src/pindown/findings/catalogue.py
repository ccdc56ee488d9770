"""All questions of an audit, in the order of a report.

To add one: write a function with ``@question(...)`` in a module of its topic and name the module here.
The order of the modules is the order in a report, and that in which questions are asked: those that may
have to wait for a compiler come last.
"""

from __future__ import annotations

from pindown.findings.how_far import (
    accuracy,
    attacks,
    calibration,
    frequencies,
    generalisation_bounds,
    input_scaling,
    lipschitz,
    output_range,
    robustness,
    rows_and_labels,
    symmetries,
    unfamiliar_inputs,
)
from pindown.findings.questions import QUESTIONS, Question
from pindown.findings.which_function import (
    architecture,
    cell_picture,
    dead_zones,
    depth,
    inputs,
    linear_regions,
    lossless,
    near_data,
)
from pindown.findings.why_this_one import (
    margin,
    separability_and_rank,
    tangent_kernel,
    training_theorems,
)

_TOPICS = (
    *(architecture, lossless, accuracy, calibration, rows_and_labels, input_scaling, lipschitz),
    *(training_theorems, margin, separability_and_rank, tangent_kernel),
    *(inputs, output_range, unfamiliar_inputs, generalisation_bounds, frequencies),
    *(symmetries, robustness, attacks),
    *(linear_regions, dead_zones, near_data, cell_picture, depth),
)

CATALOGUE: tuple[Question, ...] = tuple(
    question
    for topic in _TOPICS
    for question in QUESTIONS.values()
    if question.ask.__module__ == topic.__name__
)
