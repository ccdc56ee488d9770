"""Hebbian learning (Oja, Sanger): online principal components, and rules that respect a symmetry.

A rule respects the symmetry of its data if moving the weights moves the update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import as_samples, check_degree
from pindown.symmetry.tuning import DIVERGED_RATIO, RECORDS
from pindown.validation import choice, integer, number, positive

Rule = Literal["oja", "hebb"]
# Eigenvalues this close, relative to the largest, count as one: the leading eigenspace.
TIE = 1e-9
PlasticityRule = Callable[[Array, Array], Any]


@dataclass(frozen=True)
class HebbianRun:
    r"""Weights after a stream of samples.

    Attributes:
        weights: w, (d,), or one row per unit.
        steps: Samples seen.
        norms: Length of the (first) unit's weights along the way.
        turns: One minus the cosine between weights at neighbouring records, the largest of the units:
            falls to zero. So it does on the way, if the step is tiny.
        shares: Share of each unit's length in the eigenspace of its own eigenvalue of
            :math:`\frac1n X^\top X`: the largest for the first unit, then the next.
        converged: Whether every unit is where the rule leads: shares, lengths and angles between units
            within the tolerance of 1, 1 and a right angle (its cosine).
        kind: ``"estimate"``: of the samples' eigenvectors.
    """

    weights: Array = field(repr=False)
    steps: int
    norms: tuple[float, ...] = field(repr=False)
    turns: tuple[float, ...] = field(repr=False)
    shares: tuple[float, ...]
    converged: bool
    kind: Kind = "estimate"

    def __str__(self) -> str:
        state = "settled" if self.converged else "not settled"
        shares = ", ".join(f"{share:.4f}" for share in self.shares)
        return (
            f"{state} after {self.steps} samples: length {self.norms[-1]:.4f}, share in the eigenspace "
            f"to be learned {shares}."
        )


def oja(
    X: ArrayLike,
    start: ArrayLike,
    *,
    rule: Rule = "oja",
    step: float = 1.0,
    delay: float = 200.0,
    epochs: int = 1,
    tol: float = 0.01,
    random_state: int | None = None,
) -> HebbianRun:
    r"""Learn the first principal component from samples, one at a time.

    .. math:: y = \langle w, x \rangle, \qquad
              \Delta w = \eta_t\, y\, (x - y\, w), \qquad \eta_t = \frac{\eta_0}{t_0 + t}

    or Hebb's rule :math:`\Delta w = \eta_t\, y\, x` followed by normalisation. Both converge to a vector
    of length one in the leading eigenspace of :math:`E[x x^\top]` (samples are not centred), unless the
    start is orthogonal to it. With :math:`y x` in place of :math:`y w` the second term no longer holds
    the length, and the weights run away.

    Args:
        X: Samples, (n, d), taken in this order.
        start: First weights, (d,), not zero.
        rule: ``"oja"`` or ``"hebb"`` (normalised).
        step: Numerator :math:`\eta_0` of the step.
        delay: Samples :math:`t_0` before the step falls.
        epochs: How often the samples are shown.
        tol: How much of share and length may be missing from what counts as settled.
        random_state: A seed to shuffle the samples in every epoch; None keeps their order.

    Raises:
        ValueError: If the weights diverge: samples are too long for the step.

    >>> X = np.random.default_rng(0).standard_normal((20000, 3)) * [2.0, 1.0, 0.5]
    >>> run = oja(X, [1.0, 1.0, 1.0])
    >>> bool(abs(run.weights[0]) > 0.999), round(run.norms[-1], 2)
    (True, 1.0)

    Lecture course, section on Hebbian learning (rule corrected).
    """
    samples = as_samples(X)
    w = _start(start, samples.shape[1])
    choice("rule", rule, ("oja", "hebb"))
    _check_schedule(step, delay, epochs)
    limit, keep = _limit(samples, w), rule == "oja"
    rng = None if random_state is None else np.random.default_rng(random_state)
    total = epochs * len(samples)
    every = max(1, total // RECORDS)
    seen, t = [w.copy()], 0
    for _ in range(epochs):
        order = range(len(samples)) if rng is None else rng.permutation(len(samples))
        for i in order:
            x = samples[i]
            y = float(w @ x)
            _check_size(abs(y), limit, t)
            t += 1
            rate = step / (delay + t) * y
            w = w + rate * (x - y * w) if keep else _unit(w + rate * x)
            if t % every == 0:
                seen.append(w.copy())
    return _run(seen, samples, w, t, tol)


def sanger(
    X: ArrayLike,
    start: ArrayLike,
    *,
    step: float = 1.0,
    delay: float = 200.0,
    epochs: int = 1,
    tol: float = 0.01,
) -> HebbianRun:
    r"""Learn several principal components: each unit sees what the units before it leave.

    .. math:: \Delta w_i = \eta_t\, y_i \Big(x - \sum_{j \le i} y_j w_j\Big)

    Args:
        X: Samples, (n, d).
        start: First weights, (k, d).
        step: Numerator :math:`\eta_0` of the step.
        delay: Samples :math:`t_0` before the step falls.
        epochs: How often the samples are shown.
        tol: How much may be missing from what counts as settled, for every unit.

    >>> X = np.random.default_rng(0).standard_normal((20000, 3)) * [2.0, 1.0, 0.25]
    >>> np.abs(sanger(X, [[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]]).weights).round(1)
    array([[1., 0., 0.],
           [0., 1., 0.]])

    Sanger 1989, an extension of Oja's rule.
    """
    samples, W = as_samples(X), as_samples(start, "start").copy()
    if W.shape[1] != samples.shape[1] or len(W) > W.shape[1]:
        raise ValueError(f"start must be (k, {samples.shape[1]}) with k at most that; got {W.shape}.")
    _check_schedule(step, delay, epochs)
    limit = _limit(samples, W)
    every = max(1, epochs * len(samples) // RECORDS)
    seen, t = [W.copy()], 0
    for _ in range(epochs):
        for x in samples:
            y = W @ x
            _check_size(float(np.abs(y).max()), limit, t)
            t += 1
            W += step / (delay + t) * (np.outer(y, x) - np.tril(np.outer(y, y)) @ W)
            if t % every == 0:
                seen.append(W.copy())
    return _run(seen, samples, W, t, tol)


def leading_share(w: ArrayLike, X: ArrayLike, *, tie: float = TIE) -> float:
    r"""The share of the length of w in the leading eigenspace of :math:`\frac1n X^\top X`.

    Args:
        w: Weights, (d,).
        X: Samples, (n, d), not centred.
        tie: Eigenvalues within this share of the largest count as leading.

    >>> leading_share([3.0, 4.0, 0.0], [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    0.6

    Lecture course, section on Hebbian learning (ties in the largest eigenvalue).
    """
    samples = as_samples(X)
    return _shares(_start(w, samples.shape[1])[None], samples, tie)[0]


def _shares(W: Array, X: Array, tie: float) -> tuple[float, ...]:
    """Return the share of each row's length in the eigenspace of the eigenvalue of the same rank."""
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    near = tie * values[-1]
    shares = []
    for rank, w in enumerate(W, 1):
        own = vectors[:, np.abs(values - values[-rank]) <= near]
        shares.append(min(1.0, float(np.linalg.norm(own.T @ _unit(w)))))
    return tuple(shares)


def _limit(X: Array, w: Array) -> float:
    """The response beyond which weights count as diverged."""
    if not X.any():
        raise ValueError("all samples are zero: there is nothing to learn from; check the data.")
    return DIVERGED_RATIO * max(1.0, float(np.linalg.norm(w))) * float(np.linalg.norm(X, axis=1).max())


def _check_schedule(step: float, delay: float, epochs: int) -> None:
    positive("step", step, infinite=True)
    positive("delay", delay, zero=True, infinite=True)
    integer("epochs", epochs)


def _check_size(response: float, limit: float, steps: int) -> None:
    if not response <= limit:
        raise ValueError(
            f"the weights diverged after {steps} samples: the step is too large; scale the samples or "
            "use a larger delay."
        )


def _start(w: ArrayLike, d: int) -> Array:
    vector = as_samples(w, "the weights")
    if vector.shape != (1, d) or not vector.any():
        raise ValueError(f"weights must be {d} numbers, not all zero; got shape {np.shape(w)}.")
    return vector[0].copy()


def _unit(w: Array) -> Array:
    length = float(np.linalg.norm(w))
    return w / length if length > 0 else w


def _run(seen: list[Array], X: Array, w: Array, steps: int, tol: float) -> HebbianRun:
    records = np.array(seen).reshape(len(seen), -1, X.shape[1])
    lengths = np.linalg.norm(records, axis=2)
    cosines = np.abs((records[1:] * records[:-1]).sum(axis=2)) / np.maximum(
        lengths[1:] * lengths[:-1], np.finfo(float).tiny
    )
    turns = np.maximum(0.0, 1.0 - cosines).max(axis=1)
    W = w.reshape(-1, X.shape[1])
    shares = _shares(W, X, TIE)
    upright = np.abs(W @ W.T - np.eye(len(W))).max() <= 2 * tol  # squares of lengths, and cosines
    settled = bool(upright and min(shares) >= 1 - tol)
    return HebbianRun(w, steps, tuple(lengths[:, 0].tolist()), tuple(turns.tolist()), shares, settled)


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
    integer("steps", steps, least=0)
    number("step", step)
    for _ in range(steps):
        weights = weights + step * np.asarray(rule(weights, samples), dtype=float)
    return weights
