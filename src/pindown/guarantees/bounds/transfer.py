r"""What a linear student that imitates a linear teacher on n inputs gets wrong on new ones.

The student is the projection of the teacher's weights onto the span of the inputs. A mistake at an input
whose angle to the teacher is below :math:`\beta` needs all training inputs to be at angles of at least
:math:`\pi/2 - \beta`; with :math:`p(\theta)` the probability of an angle of at least :math:`\theta`,

.. math:: E R \le p(\beta) + (1 - p(\beta))\, p(\pi/2 - \beta)^n \quad\text{for every } \beta.

Phuong 2021, section 5.3 and appendix D.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.angular import AngularProfile, unsigned_angle
from pindown.guarantees.bounds.bound import (
    Assumption,
    Bound,
    count,
    exp_up,
    outward,
    positive,
    share,
)

_ANGLES = 20_000  # every angle gives a valid bound; the best of these is taken
SAME_ANGLE = 1e-12  # radians; angles that differ by less are the same
Form = Literal["tight", "printed"]
Learner = Callable[[Array, np.random.Generator], Array]
_INDEPENDENT = Assumption("inputs, old and new, are drawn independently from one distribution")


def transfer_risk_bound(
    profile: AngularProfile,
    n: int,
    *,
    dimension: int | None = None,
    relative_error: float = 0.0,
    form: Form = "tight",
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
        form: ``"tight"`` or ``"printed"``.

    Example:
        >>> round(transfer_risk_bound(AngularProfile.power(1.0), 20).value, 4)
        0.1821
        >>> round(transfer_risk_bound(AngularProfile.power(1.0), 20, form="printed").value, 4)
        0.1886

    Phuong 2021, Theorems 5.3 and D.4.
    """
    n, r = count("n", n), positive("relative_error", relative_error, zero=True)
    if form not in ("tight", "printed"):
        raise ValueError(f"form must be 'tight' or 'printed'; got {form!r}.")
    off = _off_angle(r, form)
    rests = [_INDEPENDENT, _profile_assumption(profile)]
    if r > 0:
        rests.append(Assumption(f"the student is within {r:g} of the exact one, relative to its length"))
    if dimension is not None and n >= count("dimension", dimension):
        rests.append(Assumption("the inputs span the space"))
        # The student is the teacher up to the angle it is off: only inputs near the boundary suffer.
        value = 0.0 if r == 0 else float(profile(max(0.0, math.pi / 2 - off)))
        terms = {"angle off": off}
    elif off > math.pi / 2:
        value, terms = 1.0, {"angle off": off}
    else:
        beta = np.linspace(0.0, math.pi / 2 - off, _ANGLES)
        hard, all_far = profile(beta), profile(np.maximum(math.pi / 2 - off - beta, 0.0)) ** n
        values = hard + (1.0 - hard) * all_far if form == "tight" else hard + all_far
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


def _off_angle(r: float, form: Form) -> float:
    if r == 0.0:
        return 0.0
    if form == "printed":
        return math.sqrt(2 * math.pi * r) if r <= 0.5 else math.inf
    return outward(math.asin(r)) if r < 1.0 else math.inf


def _profile_assumption(profile: AngularProfile) -> Assumption:
    if profile.n and profile.delta:
        return Assumption(f"angles of {profile.n:,} independent inputs were measured", "checked")
    return Assumption(f"the angular profile is right ({profile.about})")


def angle_error(relative_error: float, form: Form = "tight") -> float:
    r"""Bound the angle between w and a vector at a distance of at most r times its length.

    .. math:: \alpha \le \arcsin(r), \qquad\text{printed: } \alpha \le \sqrt{2 \pi r}

    >>> round(angle_error(0.01), 4), round(angle_error(0.01, "printed"), 3)
    (0.01, 0.251)

    Phuong 2021, Lemma D.3; arcsin is attained.
    """
    return _off_angle(positive("relative_error", relative_error, zero=True), form)


def large_margin_bound(rate: float, n: int) -> Bound:
    r"""Bound the expected risk by :math:`\gamma^n` where no input is farther than :math:`\beta`.

    Args:
        rate: :math:`\gamma = p(\pi/2 - \beta)`, for a :math:`\beta` with :math:`p(\beta) = 0`.
        n: Number of training inputs.

    >>> round(large_margin_bound(0.5, 3).value, 9)
    0.125

    Phuong 2021, Corollary 5.1.
    """
    gamma, n = share("rate", rate), count("n", n)
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
    kappa, n = positive("exponent", exponent, zero=True), count("n", n)
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
    rng, teacher, n = np.random.default_rng(random_state), np.asarray(w, dtype=np.float64), count("n", n)
    angles = np.empty((count("repetitions", repetitions), 2))
    for pair in angles:
        X = draw(n + 1, rng)
        pair[:] = [
            float(unsigned_angle(learner(rows, rng)[None, :], teacher)[0]) for rows in (X[:-1], X)
        ]
    return angles
