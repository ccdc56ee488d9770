r"""Where a deep linear student ends: the closed form, plus what its start left in unseen directions.

A student :math:`w^\top = W_L \cdots W_1` with balanced factors follows

.. math:: \dot w = -\lVert w \rVert^{2 - 2/L} \big(g + (L - 1) P_w g\big), \qquad g = \nabla \ell(w)

The part :math:`P_Q w` orthogonal to the inputs keeps its direction, and
:math:`\lVert P_Q w \rVert^2 / \lVert w \rVert^{2(L-1)/L}` never changes. Hence, with :math:`q_0 = \lVert
P_Q w(0) \rVert^2`,

.. math:: w(\infty) = \hat w + \sqrt{q / q_0}\; P_Q w(0), \qquad
          q = q_0 \Big(\frac{\lVert \hat w \rVert^2 + q}{\lVert w(0) \rVert^2}\Big)^{(L-1)/L}.

The distance to :math:`\hat w` falls like :math:`\lVert w(0) \rVert^{1/L}` only: a deep student needs an
exponentially smaller start for the same accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from pindown.affine import Array
from pindown.guarantees.bounds.bound import Assumption
from pindown.learn.distillation.loss import improves_on_zero
from pindown.learn.distillation.student import minimum_norm, null_part, problem
from pindown.learn.gates.numbers import count, positive

_LEAST = 1e-100  # squares of smaller numbers leave float64
_ROOT = 1e-15  # of the logarithm of q


@dataclass(frozen=True, eq=False)
class DeepLimit:
    r"""The limit of a deep linear student.

    Attributes:
        weights: :math:`w(\infty)`.
        shallow: :math:`\hat w`, the limit of a student with one layer from zero.
        depth: L.
        start_norm: Norm of the product of the factors at the start.
        error: :math:`\lVert w(\infty) - \hat w \rVert`, exact.
        guarantee: The theorem's bound on the error; infinite where it says nothing.
        assumptions: What the limit rests on.
    """

    weights: Array
    shallow: Array
    depth: int
    start_norm: float
    error: float
    guarantee: float
    assumptions: tuple[Assumption, ...]

    @property
    def relative_error(self) -> float:
        """The error as a share of the length of the shallow student."""
        length = float(np.linalg.norm(self.shallow))
        return self.error / length if length else math.inf

    @property
    def kind(self) -> Literal["exact", "heuristic"]:
        """Exact, or a heuristic where an assumption is violated."""
        violated = any(a.status == "violated" for a in self.assumptions)
        return "heuristic" if violated else "exact"

    def __str__(self) -> str:
        rests = "; ".join(map(str, self.assumptions))
        return (
            f"depth {self.depth}, start {self.start_norm:.3g}: ends {self.error:.4g} from the shallow "
            f"student, by the theorem at most {self.guarantee:.4g} ({self.kind}; "
            f"Phuong 2021, Theorem 5.2)\nrests on: {rests}"
        )


def deep_limit(X: ArrayLike, logits: ArrayLike, start: ArrayLike, depth: int) -> DeepLimit:
    r"""Return the limit of gradient flow on the factors of a deep linear student.

    Args:
        X: Inputs, (n, d).
        logits: The teacher's logits, (n,), a linear function of the inputs.
        start: The product :math:`w(0)` of balanced factors, (d,), not zero.
        depth: Number of factors L; 1 is a student without factors.

    Raises:
        ValueError: If the shapes do not fit, the start is zero, or no linear student has these logits.

    Example:
        The teacher (1, 5) is seen along the first axis only. With two factors and the start (0.1, 0.1)
        the unseen part grows to the root of q = 0.01 sqrt((1 + q) / 0.02):

        >>> limit = deep_limit([[1.0, 0.0]], [1.0], [0.1, 0.1], depth=2)
        >>> q = limit.error**2
        >>> limit.weights.round(4), round(0.01 * math.sqrt((1 + q) / 0.02) / q, 9)
        (array([1.    , 0.2707]), 1.0)

    Phuong 2021, Theorem 5.2 and (D.32), solved for the limit itself.
    """
    rows, z = problem(X, logits)
    w0, layers = np.asarray(start, dtype=np.float64), count("depth", depth)
    if z.ndim != 1 or w0.shape != (rows.shape[1],) or not np.isfinite(w0).all():
        raise ValueError(
            f"logits must be (n,) and start ({rows.shape[1]},), finite; got {z.shape} and {w0.shape}."
        )
    student = minimum_norm(rows, z)
    if not student.interpolates:
        raise ValueError(
            f"no linear student meets these logits (off by {student.residual:.2g}); the limit is known "
            "for logits that are linear in the inputs, for example with no more inputs than dimensions."
        )
    length = float(np.linalg.norm(w0))
    if length < _LEAST and layers > 1:
        raise ValueError(
            f"a deep student that starts at zero never moves; give a start of norm {_LEAST:g} or more."
        )
    unseen = null_part(rows, w0)
    q0, hat = float(unseen @ unseen), student.weights
    q = 0.0 if student.complete or q0 == 0.0 else _unseen_limit(q0, float(hat @ hat), length**2, layers)
    weights = hat + (math.sqrt(q / q0) if q0 else 0.0) * unseen
    better = improves_on_zero(w0, rows, z)
    rests = [Assumption("factors are balanced at the start")]
    if layers > 1:
        text = "the start has a smaller loss than zero"
        rests.append(Assumption(text, "checked" if better else "violated"))
    return DeepLimit(
        weights,
        hat,
        layers,
        length,
        math.sqrt(q),
        error_bound(length, float(np.linalg.norm(hat)), layers),
        tuple(rests),
    )


def _unseen_limit(q0: float, seen: float, start: float, depth: int) -> float:
    """Return the root q; in logarithms both sides are smooth and the slope is at least 1 / depth."""
    power = (depth - 1) / depth
    if seen == 0.0 or depth == 1:
        return float(math.exp((math.log(q0) - power * math.log(start)) * depth)) if depth > 1 else q0

    def gap(x: float) -> float:
        return x - math.log(q0) - power * (math.log(seen + math.exp(x)) - math.log(start))

    low = math.log(q0) + power * (math.log(seen) - math.log(start))
    high = low - gap(low) * depth
    if high <= low:
        return math.exp(low)
    return math.exp(float(brentq(gap, low, math.nextafter(high, math.inf) + _ROOT, xtol=_ROOT)))


def error_bound(start_norm: float, student_norm: float, depth: int) -> float:
    r"""Return the theorem's bound on the distance to the shallow student.

    .. math:: \epsilon^2 = \frac{\lVert w(0) \rVert^{2/L}}{\lVert \hat w \rVert^{2/L} - \lVert w(0)
              \rVert^{2/L}}\; \lVert \hat w \rVert^2, \qquad \lVert w(0) \rVert < \lVert \hat w \rVert

    >>> round(error_bound(0.01, 1.0, 2), 4), error_bound(2.0, 1.0, 2)
    (0.1005, inf)

    Phuong 2021, (D.40); (D.41) is misprinted.
    """
    start, hat = (
        positive("start_norm", start_norm, zero=True),
        positive("student_norm", student_norm, zero=True),
    )
    power = 2.0 / count("depth", depth)
    if start >= hat:
        return math.inf
    return hat * math.sqrt(start**power / (hat**power - start**power))


def start_norm_for(error: float, student_norm: float, depth: int) -> float:
    r"""Return the norm of the start below which the theorem promises this distance.

    .. math:: \lVert \hat w \rVert \Big(\frac{\epsilon^2}{\epsilon^2 + \lVert \hat w \rVert^2}\Big)^{L/2}

    >>> round(error_bound(start_norm_for(0.1, 3.0, 4), 3.0, 4), 12)
    0.1

    Phuong 2021, (5.11), whose minimum is always its second term, simplified.
    """
    eps, hat = positive("error", error), positive("student_norm", student_norm)
    return hat * (eps**2 / (eps**2 + hat**2)) ** (count("depth", depth) / 2.0)
