r"""What a linear student that imitates a linear teacher on n inputs gets wrong on new ones.

The student is the projection of the teacher's weights onto the span of the inputs. A mistake at an input
whose angle to the teacher is below :math:`\beta` needs all training inputs to be at angles of at least
:math:`\pi/2 - \beta`; with

.. math:: p(\theta) = P_x[\bar\alpha(w_*, x) \ge \theta], \qquad
          \bar\alpha(u, v) = \arccos\frac{|u \cdot v|}{\|u\| \|v\|} \in [0, \pi/2],

the probability of an angle of at least :math:`\theta`,

.. math:: E R \le p(\beta) + (1 - p(\beta))\, p(\pi/2 - \beta)^n \quad\text{for every } \beta.

Phuong 2021, section 5.3 and appendix D.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.guarantees.bounds.bound import Bound, exp_up, outward
from pindown.guarantees.tuning import DISTILLATION_ANGLES, EXPONENT_ANGLES
from pindown.validation import choice, integer, positive, probability, share

SAME_ANGLE = 1e-12  # radians; angles that differ by less are the same
Variant: TypeAlias = Literal["sharp", "as_printed"]
Learner = Callable[[Array, np.random.Generator], Array]
_INDEPENDENT = Assumption("inputs, old and new, are drawn independently from one distribution")
_ANGLE_ERROR = 1e-12  # of float64 angles; they are rounded up, towards harder inputs


def transfer_risk_bound(
    profile: AngularProfile,
    n: int,
    *,
    dimension: int | None = None,
    relative_error: float = 0.0,
    variant: Variant = "sharp",
) -> Bound:
    r"""Bound the expected risk of a distilled linear student.

    .. math:: \min_\beta \; p(\beta) + (1 - p(\beta))\, p(\pi/2 - \alpha - \beta)^n

    where :math:`\alpha = \arcsin(r)` is the angle that a student at a relative distance r from the exact
    one can be off. The printed forms lack the factor :math:`1 - p(\beta)` and have
    :math:`\alpha = \sqrt{2 \pi r}`.

    Args:
        profile: The function p; from a sample with ``delta``, the bound holds with that confidence.
        n: Number of training inputs.
        dimension: d; from n = d on an exact student is the teacher and the bound 0.
        relative_error: :math:`r = \|w - \hat w\| / \|\hat w\|`, the same for every sample.
        variant: ``"sharp"`` or ``"as_printed"``.

    Example:
        >>> round(transfer_risk_bound(AngularProfile.power(1.0), 20).value, 4)
        0.1821
        >>> round(transfer_risk_bound(AngularProfile.power(1.0), 20, variant="as_printed").value, 4)
        0.1886

    Phuong 2021, Theorems 5.3 and D.4.
    """
    n, r = integer("n", n), positive("relative_error", relative_error, zero=True)
    choice("variant", variant, ("sharp", "as_printed"))
    off = _off_angle(r, variant)
    rests = [_INDEPENDENT, _profile_assumption(profile)]
    if r > 0:
        rests.append(Assumption(f"the student is within {r:g} of the exact one, relative to its length"))
    if dimension is not None and n >= integer("dimension", dimension):
        rests.append(Assumption("the inputs span the space"))
        # The student is the teacher up to the angle it is off: only inputs near the boundary suffer.
        value = 0.0 if r == 0 else float(profile(max(0.0, math.pi / 2 - off)))
        terms = {"angle off": off}
    elif off > math.pi / 2:
        value, terms = 1.0, {"angle off": off}
    else:
        beta = np.linspace(0.0, math.pi / 2 - off, DISTILLATION_ANGLES)
        hard, all_far = profile(beta), profile(np.maximum(math.pi / 2 - off - beta, 0.0)) ** n
        values = hard + (1.0 - hard) * all_far if variant == "sharp" else hard + all_far
        best = int(np.argmin(values))
        value = float(values[best])
        terms = {"beta": float(beta[best]), "hard inputs": float(hard[best])}
        terms |= {"no easy input seen": float(all_far[best]), "angle off": off}
    return Bound(
        "transfer risk",
        outward(value),
        profile.delta,
        "expected risk of the student",
        terms,
        tuple(rests),
        "Phuong 2021, Theorem 5.3" if r == 0 else "Phuong 2021, Theorem D.4",
        estimated=profile.estimated,
    )


def _off_angle(r: float, variant: Variant) -> float:
    if r == 0.0:
        return 0.0
    if variant == "as_printed":
        return math.sqrt(2 * math.pi * r) if r <= 0.5 else math.inf
    return outward(math.asin(r)) if r < 1.0 else math.inf


def _profile_assumption(profile: AngularProfile) -> Assumption:
    if profile.n and profile.delta:
        return Assumption(f"angles of {profile.n:,} independent inputs were measured", "checked")
    return Assumption(f"the angular profile is right ({profile.about})")


def angle_error(relative_error: float, variant: Variant = "sharp") -> float:
    r"""Bound the angle between w and a vector at a distance of at most r times its length.

    .. math:: \alpha \le \arcsin(r), \qquad\text{printed: } \alpha \le \sqrt{2 \pi r}

    >>> round(angle_error(0.01), 4), round(angle_error(0.01, "as_printed"), 3)
    (0.01, 0.251)

    Phuong 2021, Lemma D.3; arcsin is attained.
    """
    return _off_angle(positive("relative_error", relative_error, zero=True), variant)


def large_margin_bound(rate: float, n: int) -> Bound:
    r"""Bound the expected risk by :math:`\gamma^n` where no input is farther than :math:`\beta`.

    Args:
        rate: :math:`\gamma = p(\pi/2 - \beta)`, for a :math:`\beta` with :math:`p(\beta) = 0`.
        n: Number of training inputs.

    >>> round(large_margin_bound(0.5, 3).value, 9)
    0.125

    Phuong 2021, Corollary 5.1.
    """
    gamma, n = share("rate", rate), integer("n", n)
    rests = (_INDEPENDENT, Assumption("no input has an angle of beta or more"))
    return Bound(
        "transfer risk, large margin",
        exp_up(n * math.log(gamma)) if gamma > 0.0 else 0.0,
        0.0,
        "expected risk of the student",
        {"rate": gamma},
        rests,
        "Phuong 2021, Corollary 5.1",
    )


def polynomial_angle_bound(exponent: float, n: int) -> Bound:
    r"""Bound the expected risk where :math:`p(\theta) \le (1 - 2 \theta / \pi)^\kappa`.

    .. math:: E R \le \frac{1 + (\log n)^\kappa}{n^\kappa}

    >>> round(polynomial_angle_bound(1.0, 20).value, 4)
    0.1998

    Phuong 2021, Corollary 5.2.
    """
    kappa, n = positive("exponent", exponent, zero=True), integer("n", n)
    rests = (_INDEPENDENT, Assumption(f"angles are at least as favourable as the power {kappa:g}"))
    # Each term by itself: n to a large power leaves float64.
    value = exp_up(-kappa * math.log(n)) + (math.log(n) / n) ** kappa
    return Bound(
        "transfer risk, power",
        outward(value),
        0.0,
        "expected risk of the student",
        {"exponent": kappa},
        rests,
        "Phuong 2021, Corollary 5.2",
    )


def projected(X: Array, w: ArrayLike) -> Array:
    """Return the projection of w onto the span of the rows: the exact student of a linear teacher.

    >>> projected(np.array([[2.0, 0.0, 0.0]]), [1.0, 5.0, 0.0])
    array([1., 0., 0.])
    """
    rows, teacher = np.asarray(X, dtype=np.float64), np.asarray(w, dtype=np.float64)
    return np.asarray(np.linalg.lstsq(rows, rows @ teacher, rcond=None)[0])


def monotonicity_index(
    learner: Learner,
    draw: Callable[[int, np.random.Generator], Array],
    w: ArrayLike,
    n: int,
    *,
    repetitions: int = 1000,
    strict: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> float:
    r"""Return how often one more input turns the student towards the teacher.

    .. math:: P\big[\bar\alpha(w_*, w([X, x])) < \bar\alpha(w_*, w(X))\big]

    Args:
        learner: Maps inputs (n, d) and a generator to weights; it knows the teacher by itself.
        draw: Draws so many inputs.
        w: The teacher's weights.
        n: Inputs before the last one.
        repetitions: Fresh samples.
        strict: Whether an angle that stays the same counts as a failure.
        random_state: Seed or generator.

    Example:
        >>> teacher = np.array([1.0, 2.0, 3.0, 4.0])
        >>> monotonicity_index(
        ...     lambda X, rng: projected(X, teacher), lambda n, rng: rng.standard_normal((n, 4)),
        ...     teacher, 2, repetitions=20, random_state=0)
        1.0

    Phuong 2021, Lemma 5.1 and (5.34). That more data never harm is true of the angle, not of the risk.
    """
    angles = angles_before_and_after(
        learner, draw, w, n, repetitions=repetitions, random_state=random_state
    )
    turned = angles[:, 1] - angles[:, 0]
    better = turned < -SAME_ANGLE if strict else turned <= SAME_ANGLE
    return int(better.sum()) / len(angles)


def angles_before_and_after(
    learner: Learner,
    draw: Callable[[int, np.random.Generator], Array],
    w: ArrayLike,
    n: int,
    *,
    repetitions: int = 1000,
    random_state: int | np.random.Generator | None = None,
) -> Array:
    """Return the student's angle to the teacher with n inputs and with one more, (repetitions, 2).

    Arguments are those of :func:`monotonicity_index`.
    """
    rng, teacher, n = (
        np.random.default_rng(random_state),
        np.asarray(w, dtype=np.float64),
        integer("n", n),
    )
    angles = np.empty((integer("repetitions", repetitions), 2))
    for pair in angles:
        X = draw(n + 1, rng)
        pair[:] = [
            float(unsigned_angle(learner(rows, rng)[None, :], teacher)[0]) for rows in (X[:-1], X)
        ]
    return angles


def unsigned_angle(X: ArrayLike, w: ArrayLike) -> Array:
    """Return the angle between each row and the line along w, between 0 and pi / 2.

    A zero row has the angle pi / 2: it tells nothing.

    >>> (unsigned_angle([[1.0, 1.0], [-3.0, 0.0], [0.0, 2.0]], [1.0, 0.0]) * 4 / np.pi).round(9)
    array([1., 0., 2.])
    """
    rows, axis = np.asarray(X, dtype=np.float64), np.asarray(w, dtype=np.float64).ravel()
    if rows.ndim != 2 or rows.shape[1] != axis.size or not np.isfinite(rows).all():
        raise ValueError(f"X must be finite, of shape (m, {axis.size}); got shape {rows.shape}.")
    length = float(np.linalg.norm(axis))
    if not 0 < length < math.inf:
        raise ValueError("w must be finite and not zero.")
    along = rows @ (axis / length)
    across = np.linalg.norm(rows - along[:, None] * (axis / length), axis=1)
    return np.where((along == 0) & (across == 0), np.pi / 2, np.arctan2(across, np.abs(along)))


@dataclass(frozen=True, eq=False)
class AngularProfile:
    r"""The function :math:`p(\theta)`, or an upper bound on it.

    Attributes:
        survival: Maps angles to probabilities, entry by entry.
        delta: Probability with which it is not an upper bound; 0 if it is exact.
        n: Sample size it rests on; 0 if it is given.
        about: In words.

    >>> profile = AngularProfile.power(1.0)
    >>> profile([0.0, np.pi / 4, np.pi / 2])
    array([1. , 0.5, 0. ])
    """

    survival: Callable[[Array], Array]
    delta: float = 0.0
    n: int = 0
    about: str = "as given"

    def __call__(self, theta: ArrayLike) -> Array:
        """Return p at angles."""
        return np.clip(self.survival(np.asarray(theta, dtype=np.float64)), 0.0, 1.0)

    @classmethod
    def from_samples(cls, X: ArrayLike, w: ArrayLike, *, delta: float | None = None) -> AngularProfile:
        r"""Return the shares in a sample, or with ``delta`` an upper bound that holds for all angles.

        Args:
            X: Inputs, (m, d).
            w: The teacher's weights.
            delta: At most 1/2; adds :math:`\sqrt{\log(1/\delta) / 2 m}` (one-sided DKW).
        """
        angles = np.sort(unsigned_angle(X, w)) + _ANGLE_ERROR
        m = len(angles)
        if not m:
            raise ValueError("X is empty; give at least one input.")
        slack = 0.0
        if delta is not None:
            if probability("delta", delta) > 0.5:
                raise ValueError(f"delta must be at most 1/2 for the one-sided bound; got {delta}.")
            slack = outward(math.sqrt(math.log(1.0 / delta) / (2 * m)))

        def shares(theta: Array) -> Array:
            return np.asarray((m - np.searchsorted(angles, theta, side="left")) / m + slack)

        about = "shares of a sample" if delta is None else "upper bound from a sample"
        return cls(shares, delta or 0.0, m, about)

    @classmethod
    def power(cls, exponent: float) -> AngularProfile:
        r"""Return :math:`p(\theta) = (1 - 2 \theta / \pi)^\kappa`."""
        kappa = positive("exponent", exponent, zero=True)
        return cls(
            lambda theta: np.clip(1 - 2 * theta / np.pi, 0.0, 1.0) ** kappa, about=f"power {kappa:g}"
        )

    @property
    def estimated(self) -> bool:
        """Whether it is a share of a sample without a proved error."""
        return self.n > 0 and self.delta == 0.0


def fit_exponent(profile: AngularProfile) -> float:
    r"""Return the largest :math:`\kappa` with :math:`p(\theta) \le (1 - 2\theta/\pi)^\kappa` on a grid.

    >>> round(fit_exponent(AngularProfile.power(2.0)), 6)
    2.0
    """
    theta = np.linspace(0.0, np.pi / 2, EXPONENT_ANGLES + 2)[1:-1]
    p = profile(theta)
    if (p >= 1.0).any():
        return 0.0
    with np.errstate(divide="ignore"):
        ratios = np.log(p) / np.log(1 - 2 * theta / np.pi)
    return float(ratios.min())


def fit_margin(profile: AngularProfile) -> tuple[float, float]:
    r"""Return the least :math:`\beta` on a grid with :math:`p(\beta) = 0`, and :math:`p(\pi/2 - \beta)`.

    Example:
        All inputs within 0.4 of the teacher's line:

        >>> beta, rate = fit_margin(AngularProfile(lambda t: (t <= 0.4).astype(float)))
        >>> round(beta, 2), rate
        (0.4, 0.0)
    """
    theta = np.linspace(0.0, np.pi / 2, EXPONENT_ANGLES)
    zero = np.flatnonzero(profile(theta) == 0.0)
    beta = float(theta[zero[0]]) if len(zero) else math.pi / 2
    return beta, float(profile(math.pi / 2 - beta))
