r"""What the proof says of single units: which start right, how fast they learn, why the rest is easy."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.max_pooling.schedule import LayerwiseSchedule

# The constant of the proof: separating weights are 80 d / (k eta_1 T_1), a margin of 1 with room.
_SEPARATION = 80.0


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


def theorem_error_bound(n_patterns: int, n_second: int, delta: float = 0.05) -> float:
    r"""Return the theorem's bound on the test error with its constant.

    .. math:: \frac{2 B}{\sqrt{m_2}} + (1 + B) \sqrt{\frac{2 \ln(2/\delta)}{m_2}}, \qquad
              B = \lVert v^* \rVert \max \lVert z \rVert \le 160 \sqrt{2 d}.

    Args:
        n_patterns: d.
        n_second: Points :math:`m_2` of the second phase.
        delta: Probability with which the margin bound may fail, beside the lemmas.

    Example:
        >>> theorem_error_bound(6, 200)
        1.0
        >>> round(theorem_error_bound(6, 10**9), 3)
        0.083

    Brutzkus and Globerson 2021, Theorem 5.1; Shalev-Shwartz and Ben-David 2014, Theorem 26.13.
    """
    B = 2 * _SEPARATION * sqrt(2 * n_patterns)
    return min(1.0, 2 * B / sqrt(n_second) + (1 + B) * sqrt(2 * log(2 / delta) / n_second))


def margin_error_bound(margin: float, largest_norm: float, n: int, delta: float = 0.05) -> float:
    r"""Return a bound on the error from the margin that was found.

    With :math:`R` a bound on the norm of every point and :math:`i = \max(1, \lceil \log_2 (R/\gamma)
    \rceil)`, with probability at least :math:`1 - \delta`

    .. math:: \text{error} \le \frac{2 \cdot 2^i}{\sqrt n} + \sqrt{\frac{2 \ln(4 i^2 / \delta)}{n}},

    the margin bound for each norm :math:`2^i` with confidence :math:`\delta / (2 i^2)`, all together.

    Args:
        margin: Least margin :math:`\gamma` of the n points; 0 or less gives the bound 1.
        largest_norm: R, which must not depend on the n points.
        n: Points that the margin was measured on, drawn independently of the features.
        delta: Probability with which the bound may fail.

    Example:
        >>> margin_error_bound(0.0, 1.0, 100)
        1.0
        >>> round(margin_error_bound(0.5, 1.0, 10_000), 3)
        0.07

    Shalev-Shwartz and Ben-David 2014, Theorems 26.12 and 26.14.
    """
    if n < 1 or not margin > largest_norm / sqrt(n):  # then the first term is at least 1
        return 1.0
    i = max(1, ceil(log2(largest_norm / margin)))
    return min(1.0, 2.0 * 2.0**i / sqrt(n) + sqrt(2 * log(4 * i * i / delta) / n))
