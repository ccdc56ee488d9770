r"""How many degrees of freedom a cloud of points has, from its two nearest neighbours.

Where points lie evenly in d dimensions as far as the second neighbour, the ratio of its distance to that
of the first is Pareto distributed, whatever the density and the scale,

.. math:: P(r_2/r_1 > \mu) = \mu^{-d}, \qquad \hat d = \frac{N - 1}{\sum_i\ln\mu_i}.

With N points neighbours are about :math:`N^{-1/d}` of the cloud away, which in ten dimensions is half of
it: edges of the cloud, met in proportion to that distance, lower the estimate, and curvature, met in
proportion to its square, raises it. The interval leaves room for both,

.. math:: -0.5\, N^{-1/d} \le E[\ln \hat d] - \ln d \le 0.85\, N^{-2/d}.

Layer by layer it shows how many directions a network's representation of its data uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import CURVATURE_BIAS, EDGE_BIAS, INTERVAL_LEVEL, MIN_POINTS, SHARED_NEIGHBOURS
from pindown.evidence import Kind
from pindown.torch_modules import layer_outputs
from pindown.validation import choice, number, table


@dataclass(frozen=True)
class IntrinsicDimension:
    """An estimated dimension.

    Attributes:
        value: The estimate.
        interval: Holds the dimension in at least 95 % of samples from clouds with no more edges than a
            simplex and no more curvature than a product of circles: see :func:`intrinsic_dimension`.
        n_points: Different points used.
        duplicates: Points left out because they repeat another one.
        kind: ``"estimate"``.
    """

    value: float
    interval: tuple[float, float]
    n_points: int
    duplicates: int = 0
    kind: Kind = "estimate"

    def __str__(self) -> str:
        low, high = self.interval
        return f"dimension {self.value:.3g} ({low:.3g} to {high:.3g}, {self.n_points} points)"


def intrinsic_dimension(
    X: ArrayLike, *, method: Literal["likelihood", "fit"] = "likelihood", discard: float = 0.1
) -> IntrinsicDimension:
    r"""Estimate the dimension of the manifold that points lie on.

    The estimate itself is too low for clouds with edges (a cube with d = 10 and N = 2,000: 8.4). The
    interval allows for that, for curvature, and for neighbours that points share; in ten dimensions it
    is about 5 wide. Its constants were chosen on eleven kinds of clouds. On fresh samples, 200 of each
    of 19 kinds with d from 1 to 10 and N from 200 to 2,000, half of them turned into more dimensions, it
    held d in 98 to 100 % of each kind: cubes, balls, half balls, shells, spheres, simplices, products of
    circles, paraboloids, random smooth surfaces; normal (round, correlated, rectified, two clusters),
    Laplace, Student, exponential, log-normal, beta and triangular densities. Nothing is promised where
    the cloud is much thinner in some directions than neighbours are apart, with noise, or on grids.

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
    choice("method", method, ("likelihood", "fit"))
    discard = number("discard", discard, 0.0, 0.9)
    X = table(X)
    points = np.unique(X, axis=0)
    # Dimension does not depend on place and scale, but squares of distances do leave the floats.
    unit = float(np.abs(points).max()) or 1.0
    points = points / unit
    points = points - points.mean(axis=0)
    points = points / (float(np.abs(points).max()) or 1.0)
    if len(points) < MIN_POINTS:
        raise ValueError(f"at least {MIN_POINTS} different points are needed; got {len(points)}.")
    logs = np.sort(_log_ratios(points))
    n, total = len(logs), float(logs.sum())
    if total == 0.0:
        raise ValueError("all points are as far from their second neighbour as from the first: a grid.")
    from scipy.stats import chi2

    tail, freedom = (1 - INTERVAL_LEVEL) / 2, 2 * n / SHARED_NEIGHBOURS
    low, high = (float(n / total * chi2.ppf(q, freedom) / freedom) for q in (tail, 1 - tail))
    interval = (_before_bias(low, n, CURVATURE_BIAS, 2.0), _before_bias(high, n, -EDGE_BIAS, 1.0))
    value = (n - 1) / total
    if method == "fit":
        kept = max(2, int((1 - discard) * n))
        x, survival = logs[:kept], 1 - np.arange(kept) / n
        value = float(x @ -np.log(survival) / (x @ x))
    return IntrinsicDimension(value, interval, n, len(X) - n)


def _before_bias(biased: float, n: int, size: float, power: float) -> float:
    """Return the d with ``ln d + size * n^(-power / d) = ln biased``."""
    from scipy.optimize import brentq

    def excess(log_d: float) -> float:
        return float(log_d + size * np.exp(-power * np.log(n) / np.exp(log_d)) - np.log(biased))

    centre = np.log(biased)
    return float(np.exp(brentq(excess, centre - abs(size), centre + abs(size))))


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

    >>> import torch
    >>> t = torch.rand(500, 1, generator=torch.Generator().manual_seed(0))
    >>> curve = torch.cat([t, t**2, t**3], dim=1)
    >>> found = layer_dimensions(torch.nn.Sequential(torch.nn.Linear(3, 8)), curve)
    >>> {name: round(float(one.value)) for name, one in found.items()}
    {'input': 1, '0': 1}

    Ansuini et al. 2019, which the lecture course's slides on data manifolds cite.
    """
    from pindown.extras import torch

    clouds = {"input": torch.as_tensor(X).detach()}
    clouds |= {name or "output": made for name, made in layer_outputs(module, X, layers).items()}
    return {
        name: intrinsic_dimension(cloud.reshape(len(cloud), -1).double().numpy(), method=method)
        for name, cloud in clouds.items()
    }


def _log_ratios(points: Array) -> Array:
    from sklearn.neighbors import NearestNeighbors

    distances, _ = NearestNeighbors(n_neighbors=3).fit(points).kneighbors(points)
    first, second = distances[:, 1], distances[:, 2]
    # Different points can still be at distance zero in floats; their ratio says nothing.
    kept = first > 0
    return np.asarray(np.log(second[kept] / first[kept]))
