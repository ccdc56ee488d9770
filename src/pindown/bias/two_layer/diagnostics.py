r"""How near a trained two-layer network is to its two neurons, and what gradient flow keeps on the way.

On orthogonally separable data flow never changes, or never undoes,

* balance: :math:`a_j(t) = \operatorname{sign}(a_j(0))\lVert w_j(t)\rVert` from a balanced start;
* sign: no output weight changes its sign;
* activity: a neuron with :math:`a_j > 0` that is active on a positive sample stays active on it, and
  one with :math:`a_j < 0` on a negative sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.margins.hard_margin import labelled
from pindown.bias.tuning import CLOSE_COSINE, FROZEN_SHARE, SAME_DIRECTION
from pindown.bias.two_layer.limit import TwoLayerLimit, two_layer_limit
from pindown.bias.two_layer.training import Neurons
from pindown.evidence import Kind


@dataclass(frozen=True)
class Collapse:
    """A network with one neuron for each cluster of directions.

    Attributes:
        network: The merged neurons.
        sizes: How many neurons each one stands for.
        frozen: Neurons that were dropped, because they contribute almost nothing.
        gap: Largest difference of the two functions on the samples, relative to the largest output.
        kind: ``"estimate"``: the gap is over the samples given.
    """

    network: Neurons
    sizes: tuple[int, ...]
    frozen: int
    gap: float
    kind: Kind = "estimate"

    def __str__(self) -> str:
        return (
            f"{sum(self.sizes) + self.frozen} neurons collapse to {len(self.sizes)} "
            f"(clusters of {', '.join(map(str, self.sizes))}; {self.frozen} frozen), relative gap "
            f"{self.gap:.2g}"
        )


def collapse(
    network: Any, X: ArrayLike, *, cosine: float = SAME_DIRECTION, frozen: float = FROZEN_SHARE
) -> Collapse:
    """Merge neurons of like direction and sign.

    Args:
        network: Neurons or what they can be made of, see :meth:`Neurons.of`.
        X: Samples on which the two functions are compared.
        cosine: Neighbours with at least this cosine join (single link).
        frozen: Neurons that contribute less than this share of the largest are dropped.

    Returns:
        A :class:`Collapse`.

    Example:
        >>> neurons = Neurons(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), np.array([1.0, 2.0, -3.0]))
        >>> small = collapse(neurons, [[1.0, 1.0]])
        >>> small.sizes, small.frozen, small.gap < 1e-12
        ((2, 1), 0, True)

    Phuong 2021, Corollary 3.1.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    full = Neurons.of(network)
    lengths = np.linalg.norm(full.W, axis=1)
    strength = np.abs(full.a) * lengths
    alive = np.flatnonzero((strength >= frozen * strength.max()) & (strength > 0))
    if not len(alive):
        raise ValueError("all neurons are zero")
    units = full.W[alive] / lengths[alive, None]
    linked = (units @ units.T >= cosine) & (np.sign(full.a[alive])[:, None] == np.sign(full.a[alive]))
    count, group = connected_components(csr_array(linked), directed=False)
    W, a, sizes = [], [], []
    for k in range(count):
        own = alive[group == k]
        # Directions weighted by what the neurons contribute; on one ray the merge is exact.
        mean = strength[own] @ (full.W[own] / lengths[own, None])
        total = float(strength[own].sum())
        unit = mean / float(np.linalg.norm(mean))
        W.append(unit * total**0.5)
        a.append(float(np.sign(full.a[own[0]])) * total**0.5)
        sizes.append(len(own))
    order = np.argsort(sizes)[::-1]
    merged = Neurons(np.array(W)[order], np.array(a)[order])
    values = full(X)
    gap = float(np.abs(values - merged(X)).max()) / max(
        float(np.abs(values).max()), np.finfo(float).tiny
    )
    return Collapse(merged, tuple(sizes[i] for i in order), len(full.a) - len(alive), gap)


@dataclass(frozen=True)
class Alignment:
    """A two-layer network beside its predicted limit.

    Attributes:
        singular_values: Singular values of W, largest first.
        correlations: Cosine of each neuron (p,) with the max-margin direction of its output sign.
        alive: Which neurons contribute.
        limit: The prediction.
        kind: ``"exact"``: computed from the weights, up to rounding.
    """

    singular_values: Array = field(repr=False)
    correlations: Array = field(repr=False)
    alive: NDArray[np.bool_] = field(repr=False)
    limit: TwoLayerLimit = field(repr=False)
    kind: Kind = "exact"

    @property
    def third_to_first(self) -> float:
        """Third singular value over the first: 0 at rank two."""
        return (
            float(self.singular_values[2] / self.singular_values[0])
            if len(self.singular_values) > 2
            else 0.0
        )

    @property
    def close(self) -> float:
        """Share of all neurons with a correlation above 0.9."""
        return float((self.correlations > CLOSE_COSINE).mean())

    def __str__(self) -> str:
        return (
            f"{100 * self.close:.3g} % of neurons within cosine 0.9 of their max-margin direction "
            f"(median "
            f"{np.median(self.correlations):.4g}), {int((~self.alive).sum())} frozen, third singular "
            f"value "
            f"{self.third_to_first:.2g} of the first"
        )


def alignment(network: Any, X: ArrayLike, y: ArrayLike, *, frozen: float = FROZEN_SHARE) -> Alignment:
    """Compare each neuron with the direction that theory predicts for its output sign.

    Args:
        network: Neurons or what they can be made of, see :meth:`Neurons.of`.
        X: Samples (n, d).
        y: Labels of two classes.
        frozen: Neurons that contribute less than this share of the largest count as frozen.

    Returns:
        An :class:`Alignment`.

    Example:
        >>> X, y = [[2.0, 1.0], [1.0, 2.0], [-1.0, 0.0]], [1, 1, -1]
        >>> found = alignment(Neurons(np.array([[1.0, 1.0], [-1.0, 0.0]]), np.array([1.0, -1.0])), X, y)
        >>> found.correlations.round(6).tolist()
        [1.0, 1.0]

    Phuong 2021, section 3.4.
    """
    neurons, limit = Neurons.of(network), two_layer_limit(X, y)
    lengths = np.linalg.norm(neurons.W, axis=1)
    aims = np.where(neurons.a[:, None] > 0, limit.positive, limit.negative)
    correlations = np.einsum("ij,ij->i", neurons.W, aims) / np.where(lengths > 0, lengths, 1.0)
    strength = np.abs(neurons.a) * lengths
    values = np.asarray(np.linalg.svd(neurons.W, compute_uv=False), dtype=np.float64)
    return Alignment(values, correlations, strength >= frozen * strength.max(), limit)


@dataclass(frozen=True)
class Violation:
    """One invariant that a step broke.

    Attributes:
        step: Number of the step.
        invariant: ``"balance"``, ``"sign"`` or ``"activity"``.
        neurons: Indices of the neurons concerned.
        size: Largest imbalance, or number of sign changes or of lost activities.
    """

    step: int
    invariant: str
    neurons: NDArray[np.int64] = field(repr=False)
    size: float

    def __str__(self) -> str:
        return (
            f"step {self.step}: {self.invariant} broken by {len(self.neurons)} neurons ({self.size:.3g})"
        )


class InvariantMonitor:
    """Watch a two-layer network while it is trained.

    Call :meth:`step` after every step of any training loop; violations are collected, or raised.

    Args:
        model: Neurons, a :class:`ReluNetwork`, or a torch module: read anew at every step. None if the
            network is passed to :meth:`step`.
        X: Samples (n, d).
        y: Labels of two classes.
        balance: Allowed imbalance; infinite for starts that are not balanced.
        strict: Raise at the first violation.

    Example:
        >>> X, y = [[1.0, 0.0], [-1.0, 0.0]], [1, -1]
        >>> watch = InvariantMonitor(None, X, y)
        >>> for w in (1.0, 2.0, -2.0):
        ...     watch.step(Neurons(np.array([[w, 0.0]]), np.array([abs(w)])))
        >>> [str(violation) for violation in watch.violations]
        ['step 2: activity broken by 1 neurons (1)']

    Phuong 2021, Lemmas 3.3, B.4 and B.5.
    """

    def __init__(
        self, model: Any, X: ArrayLike, y: ArrayLike, *, balance: float = 1e-4, strict: bool = False
    ) -> None:
        self.model, self.balance, self.strict = model, balance, strict
        self._points, self._labels = labelled(X, y)
        self._signs: Any = None
        self._active: Any = None
        self.steps = 0
        self.violations: list[Violation] = []

    def step(self, network: Any = None) -> None:
        """Compare the network with what it was at the last call."""
        neurons = Neurons.of(self.model if network is None else network)
        signs = np.sign(neurons.a)
        own = signs[:, None] * self._labels > 0
        active = (neurons.W @ self._points.T > 0) & own
        apart = np.abs(np.abs(neurons.a) - np.linalg.norm(neurons.W, axis=1))
        self._report("balance", apart > self.balance, float(apart.max()))
        if self._active is not None:
            if active.shape != self._active.shape:
                raise ValueError(f"the network changed from {len(self._signs)} to {len(signs)} neurons")
            turned = signs != self._signs
            self._report("sign", turned, float(turned.sum()))
            lost = self._active & ~active & ~turned[:, None]
            self._report("activity", lost.any(axis=1), float(lost.sum()))
        self._signs, self._active = signs, active
        self.steps += 1

    def _report(self, invariant: str, broken: NDArray[np.bool_], size: float) -> None:
        if broken.any():
            violation = Violation(self.steps, invariant, np.flatnonzero(broken), size)
            self.violations.append(violation)
            if self.strict:
                raise ArithmeticError(str(violation))
