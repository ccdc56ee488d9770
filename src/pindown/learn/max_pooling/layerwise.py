"""Layer-wise training and its theorem: what it asks of data and start, what follows if that was met.

Its lemmas speak of single units: which start right, how fast they learn, why the rest is easy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn.max_pooling.tuning import RADIUS_ROOM
from pindown.validation import integer, positive

# Patches closer than this, for norms of at most one, are the same pattern; inner products likewise.
_SAME_PATTERN = 1e-9
# The constant of the proof: separating weights are 80 d / (k eta_1 T_1), a margin of 1 with room.
_SEPARATION = 80.0


@dataclass(frozen=True)
class LayerwiseSchedule:
    r"""Constants of the two phases of gradient descent.

    Attributes:
        n_patterns: Number d of patterns.
        n_units: Number k of hidden units.
        n_steps: Steps :math:`T_1` of the first phase.
        step: Its step size :math:`\eta_1`.
        radius: Norm r of every unit at the start.
        output_step: Step size :math:`\eta_2` of the second phase as the theorem has it. The classifier
            goes to the same limit, the largest margin, by faster steps, and does not use it.
    """

    n_patterns: int
    n_units: int
    n_steps: int
    step: float
    radius: float
    output_step: float

    def conditions(self) -> dict[str, bool]:
        r"""Return the theorem's conditions and whether each holds.

        :math:`d \ge 3`, :math:`k \ge 8 d^3`, :math:`k \eta_1 (T_1 + 1) \le 1/2`, :math:`r < \eta_1 / 9`,
        :math:`r \le \eta_1 T_1 / 80` and :math:`\eta_2 < 8 k`.
        """
        d, k, T, eta = self.n_patterns, self.n_units, self.n_steps, self.step
        return {
            "three patterns or more": d >= 3,
            "width at least 8 d^3": k >= 8 * d**3,
            "outputs at most 1/2 in the first phase": k * eta * (T + 1) <= 0.5,
            "radius below step / 9": self.radius < eta / 9,
            "radius at most step * steps / 80": self.radius <= eta * T / 80,
            "output step below 8 k": self.output_step < 8 * k,
        }

    def __str__(self) -> str:
        failed = [name for name, holds in self.conditions().items() if not holds]
        met = "all conditions of the theorem met" if not failed else "not met: " + ", ".join(failed)
        return (
            f"{self.n_units} units from radius {self.radius:.3g}, {self.n_steps} steps of "
            f"{self.step:.3g}; {met}"
        )


def layerwise_schedule(
    n_patterns: int,
    *,
    n_units: int | None = None,
    n_steps: int = 20,
    step: float | None = None,
    radius: float | None = None,
) -> LayerwiseSchedule:
    r"""Fill in what is not given so that the theorem's conditions hold.

    .. math:: k = 8 d^3, \quad \eta_1 = \frac{1}{2 k (T_1 + 1)}, \quad
              r = 0.9 \min\Big(\frac{\eta_1}{9}, \frac{\eta_1 T_1}{80}\Big), \quad \eta_2 = 4 k.

    Args:
        n_patterns: Number d of patterns.
        n_units: Units k; with fewer than :math:`8 d^3` the theorem is silent.
        n_steps: Steps :math:`T_1` of the first phase.
        step: Step size :math:`\eta_1`.
        radius: Norm r of the units at the start.

    Returns:
        The schedule, which says what of the theorem it meets.

    Raises:
        ValueError: If a number is not positive.

    Example:
        >>> print(layerwise_schedule(3, n_steps=9))
        216 units from radius 2.31e-05, 9 steps of 0.000231; all conditions of the theorem met

    Brutzkus and Globerson 2021, Theorem 5.1 with the supplement, sections B, C and E.
    """
    for name, value in (("n_patterns", n_patterns), ("n_steps", n_steps)):
        integer(name, value)
    k = 8 * int(n_patterns) ** 3 if n_units is None else n_units
    integer("n_units", k)
    for name, number in (("step", step), ("radius", radius)):
        if number is not None:
            positive(name, number)
    eta = 1.0 / (2 * k * (n_steps + 1)) if step is None else step
    r = RADIUS_ROOM * eta * min(1 / 9, n_steps / 80) if radius is None else radius
    return LayerwiseSchedule(int(n_patterns), int(k), int(n_steps), float(eta), float(r), 4.0 * k)


def independent_halves(
    y: Array, rng: np.random.Generator
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], bool]:
    """Return two random halves and whether they are independent: chosen without a look at the labels.

    A half without one of the classes is no use; then each class is split by itself, and a class of one
    point is in both halves.
    """
    order = rng.permutation(len(y))
    halves = order[: len(y) // 2], order[len(y) // 2 :]
    independent = all(len(np.unique(y[half])) == 2 for half in halves)
    if not independent:
        classes = [order[y[order] == side] for side in (1.0, -1.0)]
        halves = (
            np.concatenate([mine[: max(1, len(mine) // 2)] for mine in classes]),
            np.concatenate([mine[len(mine) // 2 :] for mine in classes]),
        )
    return np.sort(halves[0]), np.sort(halves[1]), independent


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

    kind: Kind
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
    kind: Kind = "heuristic" if failed or patterns is None else "probability"
    n_patterns = None if patterns is None else len(patterns)
    return PatternGuarantee(kind, met, failed, n_patterns, error_bound, confidence)


@dataclass(frozen=True, eq=False)
class UnitSets:
    r"""Units that start on the right pattern with the right sign.

    Attributes:
        positive: Units with output weight 1 that like :math:`o_1` best of all patterns but :math:`o_2`.
        negative: Units with output weight -1 that like :math:`o_2` best of all but :math:`o_1`.
        low: The lemma's lower bound :math:`k / (4 d)` on both sizes.
        high: Its upper bound :math:`k / d`.
    """

    positive: NDArray[np.bool_]
    negative: NDArray[np.bool_]
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether both sizes are within the bounds."""
        return all(self.low <= s.sum() <= self.high for s in (self.positive, self.negative))

    def __str__(self) -> str:
        return (
            f"{self.positive.sum()} and {self.negative.sum()} units start on their class's pattern; "
            f"the lemma says {self.low:.4g} to {self.high:.4g}: {'holds' if self.holds else 'fails'}"
        )


def unit_sets(W: Array, a: Array, patterns: Array) -> UnitSets:
    r"""Return which units start on the right pattern.

    For orthonormal patterns and :math:`k \ge 8 d^3` units from the sphere both sizes are between
    :math:`k / (4 d)` and :math:`k / d` with probability at least :math:`1 - 4 e^{-d}`.

    Args:
        W: Units at the start, (k, patch_dim).
        a: Output weights, 1 or -1.
        patterns: Patterns, those of the positive and the negative class first.

    Example:
        >>> found = unit_sets(np.eye(3), np.array([1.0, -1.0, 1.0]), np.eye(3))
        >>> found.positive.tolist(), found.negative.tolist()
        ([True, False, False], [False, True, False])

    Brutzkus and Globerson 2021, Lemma 5.2.
    """
    scores = W @ patterns.T
    k, d = scores.shape
    without = [np.delete(scores, other, axis=1) for other in (1, 0)]
    # After the other class's pattern is taken out, the own one is first in both.
    likes = [(s.argmax(axis=1) == 0) & (s[:, 0] > 0.0) for s in without]
    return UnitSets(likes[0] & (a > 0), likes[1] & (a < 0), k / (4 * d), k / d)


def unit_set_failure(n_patterns: int) -> float:
    """Return the probability with which the lemma on the unit sets may fail, 4 e^-d.

    >>> round(unit_set_failure(6), 4)
    0.0099
    """
    return min(1.0, 4.0 * exp(-n_patterns))


def class_share_failure(n_first: int) -> float:
    r"""Bound the probability that a class has less than a third of the first half: 4 e^(-m1/18).

    With :math:`m_1 = m/2` this is the source's :math:`4 e^{-m/36}`. The event is
    :math:`|S_1^\pm| \ge m_1 / 3`; the source divides the left side once more by :math:`m_1`.

    >>> round(class_share_failure(180), 6)
    0.000182
    """
    return min(1.0, 4.0 * exp(-n_first / 18.0))


def learns_pattern(
    W: Array, t: int, units: NDArray[np.bool_], patterns: Array, own: int, schedule: LayerwiseSchedule
) -> bool:
    r"""Return whether the units have learnt their pattern as the lemma says for step t.

    .. math:: w_i \cdot o_{own} \ge t \eta_1 / 9, \qquad w_i \cdot o_j \le r \text{ for all other } j.

    Brutzkus and Globerson 2021, Lemma C.3.
    """
    scores = W[units] @ patterns.T
    others = np.delete(scores, own, axis=1)
    slack = np.finfo(float).eps * schedule.step * schedule.n_steps
    return bool(
        (scores[:, own] >= t * schedule.step / 9 - slack).all()
        and (others <= schedule.radius + slack).all()
    )


def separating_weights(sets: UnitSets, schedule: LayerwiseSchedule) -> Array:
    r"""Return the output weights :math:`v^*` that the proof separates the classes with.

    They are :math:`\pm 80 d / (k \eta_1 T_1)` on the two unit sets and 0 elsewhere; then
    :math:`y\, z(x) \cdot v^* > 1` for every point of the distribution.

    Brutzkus and Globerson 2021, supplement E.
    """
    d, k = schedule.n_patterns, schedule.n_units
    size = _SEPARATION * d / (k * schedule.step * schedule.n_steps)
    return size * (sets.positive.astype(float) - sets.negative.astype(float))
