r"""Orthogonal separability: samples of a class point one way, samples of the other the other way.

.. math:: \langle x_i, x_j\rangle > 0 \ \text{ if } y_i = y_j, \qquad
          \langle x_i, x_j\rangle \le 0 \ \text{ if } y_i \ne y_j \qquad (i = j \text{ included}).

It does not mean that the classes lie in opposite orthants of any basis: vectors that are pairwise acute
need not fit into an orthant, so the definition is checked pair by pair, on samples or on what each layer
of a network computes before its ReLU.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.margins.hard_margin import labelled
from pindown.bias.tuning import BLOCK_PRODUCTS, LAYER_BATCH, MAX_SHOWN_PRODUCTS
from pindown.evidence import Kind
from pindown.network import ReluNetwork
from pindown.torch_modules import in_evaluation
from pindown.validation import integer, optional

# A cosine of this size is zero up to the rounding of an inner product.
_ZERO_COSINE = 1e-13


@dataclass(frozen=True)
class OrthogonalSeparability:
    """Whether samples are orthogonally separable, and how far from it they are.

    Attributes:
        ok: Whether every pair has the sign that the definition asks for. A cosine of at most 1e-13
            counts as zero, since rounding may have decided its sign.
        min_same: Smallest inner product within a class (infinite without samples).
        max_cross: Largest inner product between the classes (minus infinite with one class).
        min_same_cosine: Smallest cosine within a class, samples of length zero counted as 0.
        max_cross_cosine: Largest cosine between the classes.
        same_violations: Share of pairs within a class, the sample with itself included, that are not
            positive.
        cross_violations: Share of pairs between the classes that are positive.
        cross: Inner products between the classes, at most 5,000 of them drawn evenly.
        within_negative: The same within the negative class (different samples).
        within_positive: The same within the positive class.
        kind: ``"exact"`` if all pairs were compared (up to cosines that count as zero), ``"estimate"``
            if samples were drawn.
    """

    ok: bool
    min_same: float
    max_cross: float
    min_same_cosine: float
    max_cross_cosine: float
    same_violations: float
    cross_violations: float
    cross: Array = field(repr=False)
    within_negative: Array = field(repr=False)
    within_positive: Array = field(repr=False)
    kind: Kind = "exact"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def violations(self) -> float:
        """The larger of the two shares of violating pairs."""
        return max(self.same_violations, self.cross_violations)

    def __str__(self) -> str:
        verdict = "orthogonally separable" if self.ok else "not orthogonally separable"
        return (
            f"{verdict} ({self.kind}): within classes at least {self.min_same:.4g} "
            f"({100 * self.same_violations:.3g} % violate > 0), between classes at most "
            f"{self.max_cross:.4g} "
            f"({100 * self.cross_violations:.3g} % violate <= 0)"
        )


def orthogonal_separability(
    X: ArrayLike, y: ArrayLike, *, max_samples: int | None = None, seed: int = 0
) -> OrthogonalSeparability:
    """Check every pair of samples (or features of samples).

    Args:
        X: Samples or features (n, d). Of a layer take values *before* the ReLU: after it no inner
            product is negative, and different classes could only be exactly orthogonal.
        y: Labels of at most two classes.
        max_samples: Draw at most so many samples first; the answer is then an estimate.
        seed: Seed of that draw.

    Returns:
        An :class:`OrthogonalSeparability`; its truth value is ``ok``.

    Raises:
        ValueError: If shapes or labels do not fit.

    Example:
        >>> print(orthogonal_separability([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0]], [1, 1, -1]))
        orthogonally separable (exact): within classes at least 1 (0 % violate > 0), between classes at
        most -1 (0 % violate <= 0)
        >>> bool(orthogonal_separability([[1.0, 0.0], [1.0, 1.0], [-1.0, 2.0]], [1, 1, -1]))
        False

    Phuong 2021, Definition 3.1.
    """
    points, labels = labelled(X, y)
    kind: Kind = "exact"
    max_samples = optional(integer, "max_samples", max_samples)
    rng = np.random.default_rng(seed)
    if max_samples is not None and len(points) > max_samples:
        drawn = np.sort(rng.choice(len(points), max_samples, replace=False))
        points, labels, kind = points[drawn], labels[drawn], "estimate"
    # In units of the largest number, a power of two: no product leaves the floats, none is rounded.
    unit = 2.0 ** np.floor(np.log2(float(np.abs(points).max()) or 1.0))
    points = points / unit
    within = {sign: _within(points[labels == sign], rng) for sign in (-1, 1)}
    between = _pairs(points[labels > 0], points[labels < 0], rng)
    n_same = sum(part.count for part in within.values())
    wrong = n_same - sum(part.positive for part in within.values())
    return OrthogonalSeparability(
        ok=wrong == 0 and between.positive == 0,
        min_same=_back(min(part.low for part in within.values()), unit),
        max_cross=_back(between.high, unit),
        min_same_cosine=min(part.low_cosine for part in within.values()),
        max_cross_cosine=between.high_cosine,
        same_violations=wrong / max(n_same, 1),
        cross_violations=between.positive / max(between.count, 1), cross=_back(between.drawn, unit),
        within_negative=_back(within[-1].drawn, unit), within_positive=_back(within[1].drawn, unit),
        kind=kind,
    )  # fmt: skip


def _back(products: Any, unit: float) -> Any:
    """Return inner products in the units of the samples, infinite past the largest float."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.asarray(products) * unit * unit
    return found if found.ndim else float(found)


@dataclass(frozen=True)
class _Population:
    """Extremes of the inner products of two sets, how many there are, and how many are positive."""

    low: float
    high: float
    low_cosine: float
    high_cosine: float
    count: int
    positive: int
    drawn: Array


def _pairs(A: Array, B: Array, rng: np.random.Generator) -> _Population:
    low, high, low_cosine, high_cosine, positive = np.inf, -np.inf, np.inf, -np.inf, 0
    lengths_A, lengths_B = np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)
    block = max(1, BLOCK_PRODUCTS // max(1, len(B)))
    for at in range(0, len(A) if len(B) else 0, block):
        products = A[at : at + block] @ B.T
        scale = np.outer(lengths_A[at : at + block], lengths_B)
        cosines = products / np.where(scale > 0, scale, 1.0)
        positive += int((cosines > _ZERO_COSINE).sum())
        low, high = min(low, float(products.min())), max(high, float(products.max()))
        low_cosine = min(low_cosine, float(cosines.min()))
        high_cosine = max(high_cosine, float(cosines.max()))
    return _Population(low, high, low_cosine, high_cosine, len(A) * len(B), positive, _drawn(A, B, rng))


def _within(A: Array, rng: np.random.Generator) -> _Population:
    found = _pairs(A, A, rng)
    return replace(found, drawn=_drawn(A, A, rng, apart=True))


def _drawn(A: Array, B: Array, rng: np.random.Generator, *, apart: bool = False) -> Array:
    """Return inner products of at most 5,000 pairs; ``apart`` leaves a sample with itself out."""
    if not len(A) or not len(B) or (apart and len(A) == 1):
        return np.empty(0)
    total = len(A) * len(B)
    flat = (
        np.arange(total) if total <= MAX_SHOWN_PRODUCTS else rng.integers(0, total, MAX_SHOWN_PRODUCTS)
    )
    first, second = np.divmod(flat, len(B))
    if apart:
        first, second = first[first != second], second[first != second]
    return np.asarray(np.einsum("ij,ij->i", A[first], B[second]))


def layer_separability(
    network: Any, X: ArrayLike, y: ArrayLike, *, max_samples: int | None = 2000, seed: int = 0
) -> dict[str, OrthogonalSeparability]:
    """Check the inputs and the pre-activations of every layer but the last.

    Args:
        network: A :class:`ReluNetwork`, or a torch module: every linear or convolutional submodule
            counts as a layer, in the order in which they are called.
        X: Samples (n, d) for a network; (n, ...) as the module takes them.
        y: Labels of two classes.
        max_samples: Draw at most so many samples; None for all.
        seed: Seed of that draw.

    Returns:
        One :class:`OrthogonalSeparability` for ``"input"`` and for each layer, named ``"layer 1"``, ...
        for a network and after the submodules for a module.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [-1.0]), ([[1.0]], [0.0])])
        >>> found = layer_separability(net, [[2.0, 1.0], [0.0, 1.0]], [1, -1])
        >>> [(name, bool(part)) for name, part in found.items()]
        [('input', False), ('layer 1', True)]

    Phuong 2021, section 3.5 and Figure 3.3.
    """
    points = np.asarray(X, dtype=np.float64)
    if points.ndim < 2 or not len(points):
        raise ValueError(f"X must hold samples in rows; got shape {points.shape}.")
    labels = np.asarray(y)
    if labels.shape != (len(points),):
        raise ValueError(
            f"y must hold one label for each of the {len(points)} samples; got {labels.shape}."
        )
    kept = np.arange(len(points))
    if max_samples is not None and len(points) > max_samples:
        kept = np.sort(np.random.default_rng(seed).choice(len(points), max_samples, replace=False))
    features = {"input": points[kept].reshape(len(kept), -1)}
    features |= (
        _of_network(network, features["input"])
        if isinstance(network, ReluNetwork)
        else module_features(network, points[kept])
    )
    answer = {name: orthogonal_separability(part, labels[kept]) for name, part in features.items()}
    if len(kept) < len(points):
        answer = {name: replace(part, kind="estimate") for name, part in answer.items()}
    return answer


def _of_network(network: ReluNetwork, X: Array) -> dict[str, Array]:
    layers = network.by_layer(network.preactivations(X))
    return {f"layer {i}": np.asarray(z) for i, z in enumerate(layers, 1)}


def module_features(module: Any, X: Array) -> dict[str, Array]:
    """Return outputs (n, k) of every linear or convolutional submodule except the one called last.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> {name: part.shape for name, part in module_features(net, np.ones((5, 2))).items()}
    {'0': (5, 3)}
    """
    from pindown.extras import torch

    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"a ReluNetwork or a torch module is needed; got {type(module).__name__}.")
    affine = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
    found: dict[str, list[Array]] = {}

    def keep(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: torch.Tensor) -> None:
            found.setdefault(name, []).append(output.detach().double().flatten(1).numpy())

        return hook

    hooks = [
        part.register_forward_hook(keep(name))
        for name, part in module.named_modules()
        if isinstance(part, affine)
    ]
    kind = next((p.dtype for p in module.parameters()), torch.float32)
    try:
        with in_evaluation(module), torch.no_grad():
            for start in range(0, len(X), LAYER_BATCH):
                module(torch.as_tensor(X[start : start + LAYER_BATCH], dtype=kind))
    finally:
        for hook in hooks:
            hook.remove()
    layers = {name: np.concatenate(parts) for name, parts in found.items()}
    if layers:
        layers.popitem()  # its output is the network's
    return {name: part for name, part in layers.items() if len(part) == len(X)}
