"""When a comparison on data fails: the conditions that a pipeline can ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.equivalence.comparison.result import Diff
from pindown.validation import refuse

Condition: TypeAlias = Literal["flips", "gap", "unproved"]

CONDITIONS: dict[Condition, str] = {
    "flips": "rows that the two put into different classes",
    "gap": "rows at which an output differs by more than the tolerance",
    "unproved": "rows around which the classes are not proved to be the same",
}


def failing_rows(diff: Diff, condition: str) -> NDArray[np.intp]:
    """Return the numbers of the rows that meet a condition, counted from 0.

    Args:
        diff: A comparison with data.
        condition: ``"flips"``, ``"gap"`` (at the rows, above ``diff.allowed``) or ``"unproved"``.

    Raises:
        ValueError: If there are no data, the condition is another one, or asks for classes that were not
            compared.

    >>> from pindown import ReluNetwork, diff
    >>> a, b = (ReluNetwork.from_layers([([[1.0], [-1.0]], c)]) for c in ([0, 0], [-0.5, 0.5]))
    >>> answer = diff(a, b, data=[[-2.0], [0.25], [0.75]], radius=0.3, labels=True)
    >>> [failing_rows(answer, condition).tolist() for condition in CONDITIONS]
    [[1], [0, 1, 2], [1, 2]]
    """
    rows = diff.rows
    if rows is None:
        raise ValueError(f"{condition!r} is a condition on rows; compare with data.")
    if condition == "gap":
        return np.flatnonzero((rows.gaps > (diff.tolerances or diff.allowed)).any(axis=1))
    if condition == "flips":
        if not rows.classified:
            raise ValueError("models with one output choose no classes; ask for 'gap' instead.")
        return rows.flips
    if condition == "unproved":
        if rows.margin is None:
            raise ValueError("'unproved' is about classes; compare with labels=True.")
        return np.flatnonzero([known != "proved" for known in rows.same_label])
    refuse("the condition", " or ".join(map(repr, CONDITIONS)), condition)


def exit_code(diff: Diff, conditions: Iterable[str]) -> int:
    """Return 1 if a condition is met, 2 if proofs were asked for and rows are open, else 0.

    A row around which classes differ for certain meets ``"unproved"``; one that is open does not.
    """
    undecided = False
    for condition in conditions:
        failing = failing_rows(diff, condition)
        if condition == "unproved" and diff.rows is not None:
            known = [diff.rows.same_label[row] for row in failing.tolist()]
            undecided |= "open" in known
            if "refuted" in known:
                return 1
        elif len(failing):
            return 1
    return 2 if undecided else 0
