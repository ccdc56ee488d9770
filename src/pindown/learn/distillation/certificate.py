r"""How much a linear student will lose, before it is trained: from unlabelled inputs and the teacher.

.. math:: E R \le \min_\beta\; p(\beta) + (1 - p(\beta))\, p(\pi/2 - \beta)^n

needs only the law :math:`p(\theta)` of the angle between inputs and teacher. From m unlabelled inputs it
is known up to :math:`\sqrt{\log(1/\delta) / 2m}`, at all angles at once.

Phuong 2021, Theorem 5.3 and Corollaries 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds import (
    AngularProfile,
    Bound,
    fit_exponent,
    fit_margin,
    large_margin_bound,
    polynomial_angle_bound,
    transfer_risk_bound,
)
from pindown.guarantees.bounds.linear_distillation import unsigned_angle
from pindown.learn.distillation.tuning import SIZES_SHOWN
from pindown.validation import integer


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """The bound on the expected transfer risk, over the number of inputs.

    Attributes:
        sizes: Numbers of inputs n.
        bounds: The bound for each.
    """

    sizes: tuple[int, ...]
    bounds: tuple[Bound, ...]

    @property
    def values(self) -> Array:
        """The bounds as numbers."""
        return np.array([bound.value for bound in self.bounds])

    @property
    def angles(self) -> Array:
        """The angle that parts easy from hard inputs in each bound; NaN where none is needed."""
        return np.array([bound.terms.get("beta", np.nan) for bound in self.bounds])

    def size_for(self, risk: float) -> int | None:
        """Return the smallest of the sizes with a bound of at most ``risk``, or None."""
        good = np.flatnonzero(self.values <= risk)
        return self.sizes[good[0]] if len(good) else None

    def __str__(self) -> str:
        step = max(1, len(self.sizes) // SIZES_SHOWN)
        shown = list(zip(self.sizes, self.values, strict=True))[::step]
        pairs = ", ".join(f"{n}: {value:.3g}" for n, value in shown)
        return f"expected transfer risk at most, by inputs: {pairs} ({self.bounds[0].kind})"


def risk_curve(
    profile: AngularProfile, sizes: Iterable[int], *, dimension: int | None = None
) -> RiskCurve:
    """Return the bound for several numbers of inputs.

    Args:
        profile: The law of the angle.
        sizes: Numbers of inputs.
        dimension: d; from there on a linear teacher is found exactly.

    >>> curve = risk_curve(AngularProfile.power(1.0), [5, 20, 100], dimension=100)
    >>> print(curve)
    expected transfer risk at most, by inputs: 5: 0.418, 20: 0.182, 100: 0 (exact)
    >>> curve.size_for(0.2)
    20
    """
    counts = tuple(integer("a size", n) for n in sizes)
    if not counts:
        raise ValueError("sizes is empty; give at least one number of inputs.")
    return RiskCurve(counts, tuple(transfer_risk_bound(profile, n, dimension=dimension) for n in counts))


@dataclass(frozen=True, eq=False)
class TransferCertificate:
    """What can be said about a student's expected transfer risk before it is trained.

    Attributes:
        bound: The theorem with the best angle, from the upper band of the profile: a probability.
        estimate: The same from the shares in the sample, without their error.
        margin: Corollary for a margin in angle, from the shares; None if there is no margin.
        power: Corollary for angles of a power law, from the shares; None if no power fits.
        exponent: The largest power that fits the shares.
        n: Inputs of the student.
        sample: Unlabelled inputs of the certificate.
    """

    bound: Bound
    estimate: Bound
    margin: Bound | None
    power: Bound | None
    exponent: float
    n: int
    sample: int

    @property
    def value(self) -> float:
        """The proved bound."""
        return self.bound.value

    def __str__(self) -> str:
        parts = [f"without the sampling error {self.estimate.value:.3g}"]
        if self.margin is not None:
            parts.append(f"by the margin {self.margin.value:.3g}")
        if self.power is not None:
            parts.append(f"by the power {self.exponent:.3g}: {self.power.value:.3g}")
        return f"{self.bound}\nfrom {self.sample:,} unlabelled inputs; {', '.join(parts)} (estimates)"


def transfer_certificate(
    X: ArrayLike,
    teacher: ArrayLike,
    n: int,
    *,
    delta: float = 0.05,
    relative_error: float = 0.0,
    spanning: bool = True,
) -> TransferCertificate:
    """Bound the expected risk of a student distilled from n inputs, from unlabelled inputs alone.

    Args:
        X: Unlabelled inputs, (m, d), independent of each other. They may include the student's own.
        teacher: Weights of the linear teacher, (d,).
        n: Inputs that the student will be distilled from.
        delta: Probability with which the sample may mislead.
        relative_error: Distance of the student from the exact one, relative to its length; for a deep
            student see :func:`deep_limit`.
        spanning: Whether d inputs are sure to span the space, as they are where inputs have a density;
            then nothing is lost from n = d on. False for inputs with rare features.

    Example:
        >>> from pindown.learn.distillation import power_angle_task
        >>> task = power_angle_task(2.0, 50)
        >>> found = transfer_certificate(task.draw(4000, 0), task.teacher, 20)
        >>> 0.02 < found.estimate.value < found.value < 0.1, found.bound.kind
        (True, 'probability')

    Phuong 2021, Theorem 5.3; with a relative error, Theorem D.4.
    """
    rows, w = np.asarray(X, dtype=np.float64), np.asarray(teacher, dtype=np.float64)
    band = AngularProfile.from_samples(rows, w, delta=delta)
    shares = AngularProfile.from_samples(rows, w)
    off, d = relative_error, rows.shape[1] if spanning else None
    bound, estimate = (
        transfer_risk_bound(p, n, dimension=d, relative_error=off) for p in (band, shares)
    )
    beta, rate = fit_margin(shares)
    largest = float(unsigned_angle(rows, w).max())
    exponent = fit_exponent(shares)
    # The corollaries are about exact students, and say nothing where the bound is zero.
    exact = off == 0.0 and (d is None or n < d)
    return TransferCertificate(
        bound,
        estimate,
        large_margin_bound(rate, n) if exact and beta > largest and rate < 1.0 else None,
        polynomial_angle_bound(exponent, n) if exact and exponent > 0.0 else None,
        exponent,
        integer("n", n),
        len(rows),
    )
