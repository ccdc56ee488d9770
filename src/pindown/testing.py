"""For test suites: assert that a model still is the function it was, on data and near it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from pindown.equivalence.comparison.compare import AnyModel, diff
from pindown.equivalence.comparison.gates import CONDITIONS, failing_rows
from pindown.equivalence.comparison.result import Diff

_SHOWN = 10


def assert_same_function(
    a: AnyModel,
    b: AnyModel,
    *,
    data: ArrayLike | str | PathLike[str] | None = None,
    fail_on: str | Sequence[str] | None = None,
    **options: Any,
) -> Diff:
    """Fail unless two models are the same function, on the box, for all inputs, or on rows of data.

    Without data the verdict of :func:`pindown.diff` has to be ``"same"``; what is undecided fails. With
    data no row may meet a condition.

    Args:
        a: A model, or the path of a model file; so for ``b``.
        b: The other.
        data: Rows (n, d), or the path of a file with them: ``.npz``, ``.npy`` or ``.csv``.
        fail_on: Conditions on rows, one or several: ``"flips"`` (as without any), ``"gap"`` (also as
            without any if there is one output only) or ``"unproved"``, about classes around rows.
        **options: As :func:`pindown.diff` takes them: ``box``, ``radius``, ``labels``, ``tol``, ... With
            data a finite interval is enough here (``precision=1``), and for ``"flips"`` and ``"gap"``,
            which the rows alone decide, two seconds (``budget=2``).

    Returns:
        The comparison, to look further.

    Raises:
        AssertionError: If they are not; the message says where.
        ValueError: If something that was given makes no sense.

    Example:
        >>> from pindown import ReluNetwork
        >>> a, b = (ReluNetwork.from_layers([([[1.0], [-1.0]], c)]) for c in ([0, 0], [-0.5, 0.5]))
        >>> answer = assert_same_function(a, b, data=[[-2.0], [1.0]])
        >>> assert_same_function(a, b, data=[[-2.0], [0.25]])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: 1 of 2 rows that the two put into different classes: 1; ...
    """
    conditions = [fail_on] if isinstance(fail_on, str) else list(fail_on or ())
    if "unproved" in conditions:
        options.setdefault("labels", True)
    if data is not None:
        options.setdefault("precision", 1.0)
        if "unproved" not in conditions:
            options.setdefault("budget", 2.0)
    answer = diff(a, b, data=data, **options)
    if answer.rows is None:
        if conditions:
            raise ValueError(f"fail_on={fail_on!r} is about rows; give data.")
        if answer.verdict != "same":
            raise AssertionError(str(answer))
        return answer
    for condition in conditions or ["flips" if answer.rows.classified else "gap"]:
        failing = failing_rows(answer, condition).tolist()
        if failing:
            shown = ", ".join(map(str, failing[:_SHOWN])) + (", ..." if len(failing) > _SHOWN else "")
            what = next(words for name, words in CONDITIONS.items() if name == condition)
            message = f"{len(failing):,} of {len(answer.rows):,} {what}: {shown}; {answer.rows}"
            raise AssertionError(message)
    return answer
