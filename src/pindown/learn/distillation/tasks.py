r"""Tasks for linear distillation: inputs, a linear teacher, and how the two lie to each other.

Where inputs lie evenly around the teacher's axis, the transfer risk of a student is an integral over one
angle, and needs no test set. Such inputs are

.. math:: x = \nu\,(s \cos a\; \hat w_* + \sin a\; v)

with a random angle a of a chosen law, a sign s, v even on the unit sphere orthogonal to the teacher, and
a Gaussian length :math:`\nu`.

Phuong 2021, sections 5.2, 5.3.2 and 5.4.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, expit

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.guarantees.bounds import AngularProfile
from pindown.guarantees.bounds.linear_distillation import unsigned_angle
from pindown.learn.distillation.loss import distillation_gradient, distillation_loss
from pindown.learn.distillation.tuning import RISK_SAMPLE
from pindown.validation import integer, positive

_ROOTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Panels of the quadrature shrink towards both ends, where the law of the angle may be steep.
_ENDS = np.concatenate([[0.0], np.logspace(-15, -1, 15), [0.3]])
_PANELS = np.concatenate([_ENDS, [0.5], 1.0 - _ENDS[::-1]])
_SHARE = 1e-300  # shares of inputs are found to this, or to rounding


@dataclass(frozen=True)
class TransferRisk:
    """How often student and teacher differ.

    Attributes:
        value: The probability.
        standard_error: Standard error of the estimate; zero if the value is an integral.
        n: Test inputs; zero if the value is an integral.
    """

    value: float
    standard_error: float = 0.0
    n: int = 0

    @property
    def kind(self) -> Kind:
        """Exact (to quadrature) or an estimate from test inputs."""
        return "estimate" if self.n else "exact"

    def __str__(self) -> str:
        error = f" +- {self.standard_error:.2g} on {self.n:,} inputs" if self.n else ""
        return f"transfer risk {self.value:.4g}{error} ({self.kind})"


@dataclass(frozen=True, eq=False)
class LinearDistillationTask:
    """Inputs from a distribution, and a linear teacher through the origin.

    Attributes:
        teacher: Weights of the teacher, (d,).
        sampler: Draws so many inputs with a generator, (n, d).
        profile: The law of the angle to the teacher, if it is known.
        angle_at: Maps a probability to the angle that is exceeded with it, if inputs lie evenly around
            the teacher.
        about: In words.
    """

    teacher: Array
    sampler: Callable[[int, np.random.Generator], Array]
    profile: AngularProfile | None = None
    angle_at: Callable[[Array], Array] | None = None
    about: str = "as given"

    def __post_init__(self) -> None:
        w = np.array(self.teacher, dtype=np.float64)
        if w.ndim != 1 or not np.isfinite(w).all() or not w.any():
            raise ValueError(f"the teacher must be one finite vector that is not zero; got {w.shape}.")
        object.__setattr__(self, "teacher", w)

    @property
    def dimension(self) -> int:
        """Number of inputs d."""
        return len(self.teacher)

    def draw(self, n: int, random_state: int | np.random.Generator | None = None) -> Array:
        """Return n inputs, (n, d)."""
        return self.sampler(integer("n", n), np.random.default_rng(random_state))

    def logits(self, X: ArrayLike) -> Array:
        """Return the teacher's logits, (n,)."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.teacher)

    def soft_labels(self, X: ArrayLike) -> Array:
        """Return the teacher's probabilities of class 1, (n,)."""
        return np.asarray(expit(self.logits(X)))

    def loss(self, w: ArrayLike, X: ArrayLike) -> float:
        """Return the distillation loss of a student on inputs; its least value is zero."""
        return distillation_loss(w, X, self.logits(X))

    def gradient(self, w: ArrayLike, X: ArrayLike) -> Array:
        """Return the gradient of the loss."""
        return distillation_gradient(w, X, self.logits(X))

    def transfer_risk(
        self,
        w: ArrayLike,
        *,
        n_test: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> TransferRisk:
        """Return how often a student differs from the teacher on new inputs.

        Args:
            w: The student's weights, (d,).
            n_test: Test inputs to draw; None takes the integral where there is one, else 10,000.
            random_state: Seed or generator of the test inputs.

        Example:
            >>> from pindown.learn.distillation import gaussian_task
            >>> task = gaussian_task(5)
            >>> print(task.transfer_risk([1.0, 1.0, 0.0, 0.0, 0.0]))
            transfer risk 0.25 (exact)
        """
        student = np.asarray(w, dtype=np.float64)
        if student.shape != self.teacher.shape or not np.isfinite(student).all():
            raise ValueError(f"w must be finite of shape {self.teacher.shape}; got {student.shape}.")
        if n_test is None and self.angle_at is not None:
            return TransferRisk(self._integrated(student, self.angle_at))
        n = integer("n_test", RISK_SAMPLE if n_test is None else n_test)
        X = self.draw(n, random_state)
        risk = float(np.mean((X @ student >= 0) != (self.logits(X) >= 0)))
        return TransferRisk(risk, math.sqrt(risk * (1 - risk) / n), n)

    def _integrated(self, student: Array, angle_at: Callable[[Array], Array]) -> float:
        """Integrate the chance of a mistake over the angle of the input."""
        axis = self.teacher / np.linalg.norm(self.teacher)
        along = float(student @ axis)
        across = float(np.linalg.norm(student - along * axis))
        if along < 0.0:
            return 1.0 - self._integrated(-student, angle_at)
        if across == 0.0:  # a student of zeros says 1 everywhere, where the teacher says 0 half the time
            return 0.0 if along > 0.0 else 0.5
        safe = math.atan2(along, across)  # inputs at smaller angles are answered rightly
        share = _survival(angle_at, safe)
        half, middle = share * np.diff(_PANELS) / 2, share * (_PANELS[1:] + _PANELS[:-1]) / 2
        angle = np.maximum(angle_at((middle[:, None] + half[:, None] * _ROOTS).ravel()), safe)
        # A mistake: the coordinate of v along the student's other part is below minus this.
        sideways = np.maximum(across * np.sin(angle), np.finfo(np.float64).tiny)
        bar = np.minimum(along * np.cos(angle), sideways) / sideways
        rest = (self.dimension - 2) / 2
        tail = 0.5 * betainc(rest, 0.5, 1.0 - bar**2) if rest else np.full_like(bar, 0.5)
        return float(np.sum((half[:, None] * _WEIGHTS).ravel() * tail))

    def __str__(self) -> str:
        return f"linear distillation task in {self.dimension} dimensions, {self.about}"


def _survival(angle_at: Callable[[Array], Array], angle: float) -> float:
    """Return the probability of an angle of at least this one, by inverting."""

    def excess(share: float) -> float:
        return float(angle_at(np.array([share]))[0]) - angle

    if excess(1.0) >= 0:
        return 1.0
    return float(brentq(excess, 0.0, 1.0, xtol=_SHARE)) if excess(0.0) > 0 else 0.0


def student_angle(task: LinearDistillationTask, w: ArrayLike) -> float:
    """Return the angle between student and teacher, in [0, pi / 2], whatever their signs.

    >>> round(student_angle(margin_task(1.0, 2), [0.0, 5.0]), 6)
    1.570796
    """
    return float(unsigned_angle(np.asarray(w, dtype=np.float64)[None, :], task.teacher)[0])


def axial_task(
    angle_at: Callable[[Array], Array],
    dimension: int,
    *,
    profile: AngularProfile | None = None,
    teacher: ArrayLike | None = None,
    about: str = "evenly around the teacher",
) -> LinearDistillationTask:
    """Return a task whose inputs lie evenly around the teacher, at angles of a given law.

    Args:
        angle_at: Maps a probability in [0, 1] to the angle in [0, pi / 2] that is exceeded with it.
        dimension: d, at least 2.
        profile: The probability of an angle of at least theta, if known.
        teacher: Weights of the teacher; None is the first axis.
        about: In words.
    """
    d = integer("dimension", dimension, least=2)
    w = np.eye(d)[0] if teacher is None else np.asarray(teacher, dtype=np.float64)
    if w.shape != (d,):
        raise ValueError(f"teacher must have shape ({d},); got {w.shape}.")
    axis = w / np.linalg.norm(w)

    def sampler(n: int, rng: np.random.Generator) -> Array:
        angle = angle_at(rng.random(n))
        across = rng.standard_normal((n, d))
        across -= np.outer(across @ axis, axis)
        across *= (np.sin(angle) / np.linalg.norm(across, axis=1))[:, None]
        along = rng.choice([-1.0, 1.0], n) * np.cos(angle)
        return np.asarray(rng.standard_normal((n, 1)) * (np.outer(along, axis) + across))

    return LinearDistillationTask(w, sampler, profile, angle_at, about)


def power_angle_task(
    exponent: float, dimension: int, *, teacher: ArrayLike | None = None
) -> LinearDistillationTask:
    r"""Return a task with :math:`P[a \ge \theta] = (1 - 2\theta/\pi)^\kappa`; larger is easier.

    Args:
        exponent: :math:`\kappa`, above zero; 1 is an even angle.
        dimension: d.
        teacher: Weights of the teacher; None is the first axis.

    >>> task = power_angle_task(1.0, 20)
    >>> task.draw(3, 0).shape, print(task)
    linear distillation task in 20 dimensions, angles of power 1
    ((3, 20), None)

    Phuong 2021, section 5.4.1: the generator of tasks with a polynomial angle distribution.
    """
    kappa = positive("exponent", exponent)
    return axial_task(
        lambda share: (np.pi / 2) * (1.0 - share ** (1.0 / kappa)),
        dimension,
        profile=AngularProfile.power(kappa),
        teacher=teacher,
        about=f"angles of power {kappa:g}",
    )


def margin_task(
    largest: float, dimension: int, *, teacher: ArrayLike | None = None
) -> LinearDistillationTask:
    """Return a task with even angles up to a largest one below pi / 2: a margin in angle.

    >>> float(margin_task(1.0, 3).profile.survival(0.25))
    0.75

    Phuong 2021, Figure 5.1 (B) and Corollary 5.1.
    """
    most = positive("largest", largest)
    if most >= np.pi / 2:
        raise ValueError(f"largest must be below pi / 2 for a margin; got {largest!r}.")
    profile = AngularProfile(lambda t: 1.0 - t / most, about=f"even up to {most:g}")
    return axial_task(
        lambda share: most * (1.0 - share),
        dimension,
        profile=profile,
        teacher=teacher,
        about=profile.about,
    )


def boundary_task(
    exponent: float, dimension: int, *, teacher: ArrayLike | None = None
) -> LinearDistillationTask:
    r"""Return a task with inputs near the boundary: :math:`P[a \ge \theta] = 1 - (2\theta/\pi)^\kappa`.

    >>> float(boundary_task(2.0, 3).profile.survival(np.pi / 4))
    0.75

    Phuong 2021, Figure 5.1 (C).
    """
    kappa = positive("exponent", exponent)
    profile = AngularProfile(
        lambda t: 1.0 - (2 * t / np.pi) ** kappa, about=f"angles near the boundary, power {kappa:g}"
    )
    return axial_task(
        lambda share: (np.pi / 2) * (1.0 - share) ** (1.0 / kappa),
        dimension,
        profile=profile,
        teacher=teacher,
        about=profile.about,
    )


def gaussian_task(dimension: int, *, teacher: ArrayLike | None = None) -> LinearDistillationTask:
    r"""Return a task with Gaussian inputs, whose transfer risk is the angle to the teacher over pi.

    >>> round(gaussian_task(7).transfer_risk([1.0, 0, 1.0, 0, 0, 0, 0]).value, 9)
    0.25
    """
    d = integer("dimension", dimension)
    shape = (d - 1) / 2
    profile = AngularProfile(lambda t: betainc(0.5, shape, np.cos(t) ** 2), about="angles of a Gaussian")
    found = axial_task(
        lambda share: np.arccos(np.sqrt(betaincinv(0.5, shape, share))),
        d,
        profile=profile,
        teacher=teacher,
        about="Gaussian inputs",
    )
    return LinearDistillationTask(
        found.teacher, lambda n, rng: rng.standard_normal((n, d)), profile, found.angle_at, found.about
    )
