"""Averages over groups with the Haar measure, which makes them invariant: sums, quadrature, draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.evidence import Kind
from pindown.symmetry.groups import Group
from pindown.validation import choice, integer, refuse

Function = Callable[[NDArray[np.float64]], ArrayLike]


@dataclass(frozen=True, eq=False)
class Average:
    """An average over a group.

    Attributes:
        value: The average, of the shape of the function's values.
        standard_error: Standard error of a Monte Carlo average; zero otherwise.
        n: How many elements were averaged.
        kind: ``"exact"`` for a sum over all elements, else ``"estimate"``.
        method: How it was computed.
    """

    value: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    n: int
    kind: Kind
    method: str

    def __str__(self) -> str:
        shown = f"{float(self.value):.6g}" if self.value.ndim == 0 else f"{self.value.shape} numbers"
        error = f" ± {float(self.standard_error.max()):.2g}" if self.standard_error.any() else ""
        return f"{shown}{error} ({self.kind}: {self.method}, n = {self.n:,})"


def group_average(
    function: Function, group: Group, x: ArrayLike, *, n: int | None = None, seed: int = 0
) -> Average:
    r"""Average a function over the orbit of a sample, :math:`|G|^{-1} \sum_g f(g x)`.

    Args:
        function: Takes one sample.
        group: A finite group with its action.
        x: The sample.
        n: How many elements to draw; by default all, which is exact.
        seed: Seed of the draw.

    >>> from pindown.symmetry import cyclic
    >>> print(group_average(lambda x: x[0] ** 2, cyclic(3), [1.0, 2.0, 3.0]))
    4.66667 (exact: all elements of C3, n = 3)

    Lecture course, slides on the Haar measure.
    """
    sample = np.asarray(x, dtype=float)[None]
    if n is None:
        values = _values(function, (group.act(i, sample)[0] for i in range(group.order)))
        return _exact(values, f"all elements of {group.name}")
    draws = np.random.default_rng(seed).integers(group.order, size=integer("n", n))
    values = _values(function, (group.act(int(i), sample)[0] for i in draws))
    return _monte_carlo(values, f"random elements of {group.name}")


def circle_average(function: Function, x: ArrayLike, n: int = 64) -> Average:
    r"""Average over all rotations of the plane, :math:`\frac1{2\pi}\int f(R_\theta x)\,d\theta`.

    The trapezoid rule with n angles is exact for trigonometric polynomials of degree below n and
    converges faster than any power of n for smooth functions.

    Args:
        function: Takes one sample.
        x: A point of the plane (2,), or several, (..., 2), rotated together.
        n: How many angles.

    >>> round(float(circle_average(lambda p: p[0] ** 2, [3.0, 4.0]).value), 10)
    12.5

    Lecture course, slides on the Haar measure.
    """
    points = np.asarray(x, dtype=float)
    if points.shape[-1:] != (2,):
        raise ValueError(f"points of the plane have two coordinates; got shape {points.shape}.")
    angles = 2.0 * np.pi * np.arange(integer("n", n)) / n
    turned = (points @ np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) for t in angles)
    values = _values(function, turned)
    zeros = np.zeros(values.shape[1:])
    return Average(values.mean(axis=0), zeros, len(values), "estimate", "trapezoid rule on SO(2)")


def space_average(function: Function, x: ArrayLike, n: int = 1000, seed: int = 0) -> Average:
    """Average over random rotations of space, with the standard error of the draw.

    Args:
        function: Takes one sample.
        x: A point of space (3,), or several, (..., 3), rotated together.
        n: How many rotations, at least 2.
        seed: Seed of the draw.

    >>> found = space_average(lambda p: p @ p, [1.0, 2.0, 2.0], n=10)
    >>> abs(float(found.value) - 9.0) < 1e-12
    True

    Lecture course, slides on the Haar measure.
    """
    from scipy.spatial.transform import Rotation

    points = np.asarray(x, dtype=float)
    if points.shape[-1:] != (3,):
        raise ValueError(f"points of space have three coordinates; got shape {points.shape}.")
    turns = Rotation.random(integer("n", n), np.random.default_rng(seed)).as_matrix()
    return _monte_carlo(_values(function, (points @ turn.T for turn in turns)), "random SO(3)")


def affine_integral(
    function: Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike],
    element: tuple[float, float] = (1.0, 0.0),
    *,
    measure: Literal["right", "left"] = "right",
    log_scale: float = 8.0,
    shift: float = 60.0,
    n: int = 801,
) -> float:
    r"""Integrate :math:`I(\bar g) = \int f(g \bar g)\,dg` over the maps :math:`t \mapsto at + b`, a > 0.

    With the right-invariant measure :math:`da\,db / a` the result does not depend on
    :math:`\bar g = (\bar a, \bar b)`. No measure of this group is invariant on both sides: with the
    left one, :math:`da\,db / a^2`, the integral becomes :math:`\bar a\,I(e)`. The group is not compact:
    the integral is cut off, so the function must vanish towards the ends.

    Args:
        function: Vectorised in (a, b), negligible beyond the cut-offs.
        element: The element :math:`\bar g`, as (scale, shift).
        measure: ``"right"`` or, to see it fail, ``"left"``.
        log_scale: Cut-off of ``|log a|``.
        shift: Cut-off of ``|b|``.
        n: Nodes of the trapezoid rule on each axis.

    >>> bump = lambda a, b: np.exp(-(np.log(a) ** 2) - b**2)
    >>> round(affine_integral(bump) / affine_integral(bump, (2.0, 1.0)), 8)
    1.0
    >>> wrong = [affine_integral(bump, g, measure="left") for g in ((1.0, 0.0), (2.0, 1.0))]
    >>> round(wrong[1] / wrong[0], 8)
    2.0

    Lecture course, slides on the Haar measure, with the side of the invariance said.
    """
    scale, offset = element
    if not (scale > 0.0 and np.isfinite([scale, offset]).all()):
        raise ValueError(f"an element is a positive scale and a finite shift; got {element!r}.")
    choice("measure", measure, ("right", "left"))
    logs, b = np.linspace(-log_scale, log_scale, n), np.linspace(-shift, shift, n)
    a = np.exp(logs)[:, None]
    values = np.asarray(function(a * scale, a * offset + b), dtype=float)
    # In the coordinate log a, da / a is d(log a); the left measure divides by a once more.
    weight = 1.0 if measure == "right" else 1.0 / a
    return float(np.sum(values * weight) * (logs[1] - logs[0]) * (b[1] - b[0]))


def _values(function: Function, samples: Any) -> NDArray[np.float64]:
    values = np.array([np.asarray(function(sample), dtype=float) for sample in samples])
    if not np.isfinite(values).all():
        raise ValueError("the function must have finite values on the whole orbit; some are not.")
    return values


def _exact(values: NDArray[np.float64], method: str) -> Average:
    mean = np.asarray(values.mean(axis=0))
    return Average(mean, np.zeros(mean.shape), len(values), "exact", method)


def _monte_carlo(values: NDArray[np.float64], method: str) -> Average:
    if len(values) < 2:
        refuse("n", "at least 2: a standard error needs two draws", len(values))
    error = np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))
    return Average(np.asarray(values.mean(axis=0)), error, len(values), "estimate", method)
