"""Learning rules that respect the symmetry of their data: moving the weights moves the update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import as_samples, check_degree

PlasticityRule = Callable[[Array, Array], Any]


def gradient_rule(derivative: Callable[[Array], Any]) -> PlasticityRule:
    r"""The gradient, for every unit, of an objective that is a sum over units and samples.

    .. math:: L(W) = \sum_{ij} f(\langle w_i, x_j \rangle), \qquad
              \nabla_{w_i} L = \sum_j f'(\langle w_i, x_j \rangle)\, x_j

    Args:
        derivative: :math:`f'` on arrays.

    Returns:
        A rule: weights (m, d) and samples (n, d) to updates (m, d).

    >>> hebb = gradient_rule(lambda u: u)
    >>> hebb(np.array([[1.0, 0.0]]), np.array([[2.0, 1.0]])).tolist()
    [[4.0, 2.0]]

    Lecture course, section on plasticity rules.
    """

    def rule(W: Array, X: Array) -> Array:
        return np.asarray(derivative(W @ X.T), dtype=float) @ X

    return rule


def oja_rule(W: Array, X: Array) -> Array:
    r"""Oja's update of every unit, summed over samples: :math:`\sum_j y_j (x_j - y_j w)`.

    >>> oja_rule(np.array([[1.0, 0.0]]), np.array([[2.0, 1.0]])).tolist()
    [[0.0, 2.0]]

    Lecture course, section on Hebbian learning (rule corrected).
    """
    y = W @ X.T
    return y @ X - (y**2).sum(axis=1, keepdims=True) * W


def plasticity_equivariance_error(
    rule: PlasticityRule, W: ArrayLike, X: ArrayLike, group: Group, *, unit: int | None = 0
) -> float:
    r"""How far moving weights and moving their update are apart.

    .. math:: \max_g \frac{\lVert \Delta_i(\dots, g w_i, \dots) - g\, \Delta_i(\dots, w_i, \dots) \rVert}
              {\lVert \Delta_i \rVert}

    It is zero for every rule that is the gradient of a sum over units and samples, when the samples are
    a union of orbits of an orthogonal action. A rule that couples units respects the symmetry only if
    all units are moved together: ``unit=None``.

    Args:
        rule: A function of weights (m, d) and samples (n, d) to updates (m, d).
        W: Weights, (m, d) or (d,).
        X: Samples, (n, d).
        group: The group.
        unit: Which unit is moved; None moves all.

    >>> from pindown.symmetry.groups import cyclic
    >>> group, w = cyclic(3), [1.0, 2.0, 4.0]
    >>> orbit = group.orbit([1.0, 0.5, 0.0])
    >>> plasticity_equivariance_error(oja_rule, w, orbit, group) < 1e-12
    True
    >>> plasticity_equivariance_error(oja_rule, w, orbit[:2], group) > 0.1
    True

    Lecture course, section on plasticity rules.
    """
    weights, samples = as_samples(W, "W"), as_samples(X)
    check_degree(group, samples.shape[1])
    if weights.shape[1] != samples.shape[1]:
        raise ValueError(f"weights have {weights.shape[1]} numbers and samples {samples.shape[1]}.")
    if unit is not None and not 0 <= unit < len(weights):
        raise ValueError(f"unit must be 0 to {len(weights) - 1}, or None for all; got {unit!r}.")
    rows = slice(None) if unit is None else slice(unit, unit + 1)
    update = np.asarray(rule(weights, samples), dtype=float)[rows]
    size, worst = float(np.linalg.norm(update)), 0.0
    for index in range(group.order):
        moved = weights.copy()
        moved[rows] = group.act(index, weights[rows])
        found = np.asarray(rule(moved, samples), dtype=float)[rows]
        worst = max(worst, float(np.linalg.norm(found - group.act(index, update))))
    return worst / size if size > 0 else worst


def learn(rule: PlasticityRule, W: ArrayLike, X: ArrayLike, *, step: float, steps: int) -> Array:
    """Follow a rule: weights after a number of steps on all samples at once, (m, d).

    >>> learn(oja_rule, [1.0, 1.0], [[2.0, 0.0], [0.0, 1.0]], step=0.1, steps=200).round(3) + 0.0
    array([[1., 0.]])

    Lecture course, section on plasticity rules.
    """
    weights, samples = as_samples(W, "W").copy(), as_samples(X)
    if steps < 0 or not np.isfinite(step):
        raise ValueError("steps must be at least 0 and step finite.")
    for _ in range(steps):
        weights = weights + step * np.asarray(rule(weights, samples), dtype=float)
    return weights
