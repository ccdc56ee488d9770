"""Which assumptions of the max-pooling theorem a data set and a start met, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.learn.max_pooling.lemmas import UnitSets
from pindown.learn.max_pooling.schedule import LayerwiseSchedule

# Patches closer than this, for norms of at most one, are the same pattern; inner products likewise.
_SAME_PATTERN = 1e-9
_KINDS = ("probability", "heuristic")


@dataclass(frozen=True)
class PatternGuarantee:
    """What the theorem says for this fit.

    Attributes:
        kind: ``"probability"`` if all assumptions that can be seen were met: the error bound then holds
            with the given confidence. ``"heuristic"`` otherwise.
        met: Names of the assumptions that hold.
        failed: Names of those that do not, or were not reached because another failed.
        n_patterns: Number of different patches in the data, or None if they are no patterns.
        error_bound: The better of the theorem's and the margin's bound on the test error.
        confidence: Probability with which it holds for data drawn independently.
    """

    kind: str
    met: tuple[str, ...]
    failed: tuple[str, ...]
    n_patterns: int | None
    error_bound: float
    confidence: float

    def __bool__(self) -> bool:
        return self.kind == "probability"

    def __str__(self) -> str:
        if self.kind == "probability":
            return (
                f"all assumptions met with {self.n_patterns} patterns; test error at most "
                f"{self.error_bound:.3g} with confidence {self.confidence:.3g}"
            )
        bound = f"; by the margin alone, test error at most {self.error_bound:.3g} with confidence "
        said = f"{bound}{self.confidence:.3g}" if self.error_bound < 1.0 else ""
        return f"heuristic: not met: {', '.join(self.failed)}{said}"


def seen_patterns(X: Array) -> Array | None:
    """Return the different patches, one per row, or None if there are more than dimensions.

    >>> seen_patterns(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    rows = X.reshape(-1, X.shape[2])
    found = rows[:1]
    rest = rows
    while len(found) <= X.shape[2]:
        far = np.abs(rest - found[-1]).max(axis=1) > _SAME_PATTERN
        rest = rest[far]
        if not len(rest):
            return found[np.lexsort(found.T[::-1])]
        found = np.vstack([found, rest[:1]])
    return None


def class_patterns(X: Array, y: Array, patterns: Array) -> tuple[int, int] | None:
    """Return the patterns that all points of the positive, negative class hold and no other does."""
    holds = np.array(
        [(np.abs(X - p).max(axis=2) <= _SAME_PATTERN).any(axis=1) for p in patterns]
    ).T  # (m, patterns)
    own = [np.flatnonzero((holds == (y == side)[:, None]).all(axis=0)) for side in (1, -1)]
    if len(own[0]) == 1 and len(own[1]) == 1:
        return int(own[0][0]), int(own[1][0])
    return None


def data_assumptions(X: Array, y: Array) -> tuple[dict[str, bool], Array | None]:
    """Check the assumptions on the data.

    Args:
        X: Patches of norm at most one, (m, n, d).
        y: Labels 1 and -1.

    Returns:
        Assumptions and whether they hold, and the patterns, those of the classes first, if all hold.
    """
    patterns = seen_patterns(X)
    if patterns is None:
        return {"patches are few patterns": False}, None
    gram = patterns @ patterns.T
    orthonormal = bool(np.abs(gram - np.eye(len(gram))).max() <= _SAME_PATTERN)
    own = class_patterns(X, y, patterns)
    checks = {
        "patches are few patterns": True,
        "patterns are orthonormal": orthonormal,
        "one pattern marks each class": own is not None,
    }
    if own is None or not orthonormal:
        return checks, None
    rest = [j for j in range(len(patterns)) if j not in own]
    return checks, patterns[[*own, *rest]]


def start_assumptions(schedule: LayerwiseSchedule, y_first: Array, sets: UnitSets) -> dict[str, bool]:
    """Check the conditions on the constants, the first half and the units at the start."""
    least = min((y_first == side).sum() for side in (1, -1))
    return {
        **schedule.conditions(),
        "each class has a third of the first half": bool(3 * least >= len(y_first)),
        "enough units start on the patterns": sets.holds,
    }


def summarised(
    checks: dict[str, bool], patterns: Array | None, error_bound: float, confidence: float
) -> PatternGuarantee:
    """Return the guarantee that the checks amount to."""
    met = tuple(name for name, holds in checks.items() if holds)
    failed = tuple(name for name, holds in checks.items() if not holds)
    kind = _KINDS[bool(failed) or patterns is None]
    n_patterns = None if patterns is None else len(patterns)
    return PatternGuarantee(kind, met, failed, n_patterns, error_bound, confidence)
