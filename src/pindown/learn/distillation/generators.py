r"""Tasks whose inputs lie evenly around the teacher, at angles of a chosen law.

.. math:: x = \nu\,(s \cos a\; \hat w_* + \sin a\; v)

with a random angle a, a sign s, v even on the unit sphere orthogonal to the teacher, and a Gaussian
length :math:`\nu`.

Phuong 2021, sections 5.3.2 and 5.4.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv

from pindown.affine import Array
from pindown.guarantees.bounds import AngularProfile
from pindown.learn.distillation.tasks import LinearDistillationTask
from pindown.learn.gates.numbers import count, positive


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
    d = count("dimension", dimension)
    if d < 2:
        raise ValueError(f"angles need a dimension of at least 2; got {d}.")
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

    Phuong 2021, section 5.4.1.
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
    d = count("dimension", dimension)
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
