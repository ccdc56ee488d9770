r"""How many degrees of freedom a cloud of points has, from its two nearest neighbours.

On a manifold of dimension d with locally even density the ratio of the distances to the second and the
first neighbour is Pareto distributed,

.. math:: P(r_2/r_1 > \mu) = \mu^{-d}, \qquad \hat d = \frac{N - 1}{\sum_i\ln\mu_i},

whatever the density and the scale. Layer by layer it shows how many directions a network's
representation of its data uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.evaluation import in_evaluation
from pindown.bias.least_squares.checks import number, table

_LEAST = 10  # below this many different points the interval is too wide to mean anything
_LEVEL = 0.95


@dataclass(frozen=True)
class IntrinsicDimension:
    """An estimated dimension.

    Attributes:
        value: The estimate.
        interval: Interval of 95 %, as if the ratios of different points were independent.
        n_points: Different points used.
        duplicates: Points left out because they repeat another one.
        kind: ``"estimate"``.
    """

    value: float
    interval: tuple[float, float]
    n_points: int
    duplicates: int = 0
    kind: str = "estimate"

    def __str__(self) -> str:
        low, high = self.interval
        return f"dimension {self.value:.3g} ({low:.3g} to {high:.3g}, {self.n_points} points)"


def intrinsic_dimension(
    X: ArrayLike, *, method: Literal["likelihood", "fit"] = "likelihood", discard: float = 0.1
) -> IntrinsicDimension:
    r"""Estimate the dimension of the manifold that points lie on.

    Args:
        X: Points (n, d), at least ten different ones.
        method: ``"likelihood"`` for the closed form above; ``"fit"`` for the slope through the origin of
            :math:`-\ln(1 - F(\mu))` over :math:`\ln\mu`, which is less moved by outliers.
        discard: Share of the largest ratios that ``"fit"`` leaves out.

    Returns:
        An :class:`IntrinsicDimension`.

    Raises:
        ValueError: If there are too few different points, or an option is another one.

    Example:
        Points on a line in space:

        >>> t = np.random.default_rng(0).uniform(size=(500, 1))
        >>> found = intrinsic_dimension(t @ [[1.0, 2.0, -1.0]])
        >>> found.interval[0] < 1 < found.interval[1]
        True

    Facco et al. 2017; Ansuini et al. 2019, which the lecture course's slides on data manifolds cite.
    """
    if method not in ("likelihood", "fit"):
        raise ValueError(f"method must be 'likelihood' or 'fit'; got {method!r}.")
    discard = number("discard", discard, 0.0, 0.9)
    X = table(X)
    points = np.unique(X, axis=0)
    # Dimension does not depend on place and scale, but squares of distances do leave the floats.
    unit = float(np.abs(points).max()) or 1.0
    points = points / unit
    points = points - points.mean(axis=0)
    points = points / (float(np.abs(points).max()) or 1.0)
    if len(points) < _LEAST:
        raise ValueError(f"at least {_LEAST} different points are needed; got {len(points)}.")
    logs = np.sort(_log_ratios(points))
    n, total = len(logs), float(logs.sum())
    if total == 0.0:
        raise ValueError("all points are as far from their second neighbour as from the first: a grid.")
    from scipy.stats import chi2

    tail = (1 - _LEVEL) / 2
    interval = tuple(float(chi2.ppf(q, 2 * n) / (2 * total)) for q in (tail, 1 - tail))
    value = (n - 1) / total
    if method == "fit":
        kept = max(2, int((1 - discard) * n))
        x, survival = logs[:kept], 1 - np.arange(kept) / n
        value = float(x @ -np.log(survival) / (x @ x))
    return IntrinsicDimension(value, (interval[0], interval[1]), n, len(X) - n)


def layer_dimensions(
    module: Any,
    X: Any,
    layers: Sequence[str] | None = None,
    *,
    method: Literal["likelihood", "fit"] = "likelihood",
) -> dict[str, IntrinsicDimension]:
    """Estimate the dimension of a network's representation of its data, layer by layer.

    Args:
        module: A torch module; it is run once, in evaluation mode.
        X: Inputs, a tensor.
        layers: Names of submodules; all without children if left out.
        method: As in :func:`intrinsic_dimension`.

    Returns:
        The dimension of the inputs, under ``"input"``, and of each layer's outputs, in the order of the
        module.

    Raises:
        ValueError: If a layer is unknown, or has too few different outputs.

    Ansuini et al. 2019, which the lecture course's slides on data manifolds cite.
    """
    import torch

    named = dict(module.named_modules())
    chosen = (
        list(layers) if layers is not None else [n for n, m in named.items() if not list(m.children())]
    )
    unknown = [name for name in chosen if name not in named]
    if unknown:
        raise ValueError(
            f"layers must name submodules ({', '.join(filter(None, named))}); got {unknown}."
        )
    outputs: dict[str, Array] = {}
    handles = []
    for name in chosen:

        def keep(_: Any, __: Any, output: Any, name: str = name) -> None:
            outputs[name or "output"] = output.detach().reshape(len(output), -1).double().numpy()

        handles.append(named[name].register_forward_hook(keep))
    X = torch.as_tensor(X)
    try:
        with in_evaluation(module), torch.no_grad():
            module(X)
    finally:
        for handle in handles:
            handle.remove()
    clouds = {"input": X.detach().reshape(len(X), -1).double().numpy(), **outputs}
    return {name: intrinsic_dimension(cloud, method=method) for name, cloud in clouds.items()}


def _log_ratios(points: Array) -> Array:
    from sklearn.neighbors import NearestNeighbors

    distances, _ = NearestNeighbors(n_neighbors=3).fit(points).kneighbors(points)
    first, second = distances[:, 1], distances[:, 2]
    # Different points can still be at distance zero in floats; their ratio says nothing.
    kept = first > 0
    return np.asarray(np.log(second[kept] / first[kept]))
