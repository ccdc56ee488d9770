r"""How near the outputs of networks trained from a cluster of starts are, and what noise they bear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.bound import positive, probability
from pindown.guarantees.bounds.representatives import WeightList


@dataclass(frozen=True, eq=False)
class Niceness:
    r"""How far networks of a cluster are from one of them on a sample.

    Attributes:
        eps: :math:`\max_{i, x} \|f_{A_i}(x) - f_A(x)\| / \|f_A(x)\|`; infinite if only :math:`f_A` is 0.
        gamma: eps times the largest :math:`\|f_A(x)\|`: the sample is nice above it.
        gaps: The sharper :math:`\max_x \|f_{A_i}(x) - f_A(x)\|` for each i.
        largest_output: :math:`\max_x \|f_A(x)\|`.
    """

    eps: float
    gamma: float
    gaps: Array
    largest_output: float

    def __str__(self) -> str:
        return (
            f"outputs differ by at most {self.eps:.4g} of their size: nice for margins above "
            f"{self.gamma:.4g} (exact up to rounding)"
        )


def niceness(centre: WeightList, cluster: Sequence[WeightList], X: ArrayLike) -> Niceness:
    """Measure how near the outputs of a cluster of networks are on a sample.

    Example:
        Copies of the network are as nice as can be, and a doubled one is off by all of its output:

        >>> net = WeightList("given", (np.eye(2), np.eye(2)))
        >>> double = WeightList("given", (np.eye(2), 2 * np.eye(2)))
        >>> niceness(net, [net, net], [[1.0, 0.0]]).eps, niceness(net, [double], [[3.0, 4.0]]).gamma
        (0.0, 5.0)

    Mukherjee 2020, Definition 25.
    """
    rows = np.asarray(X, dtype=np.float64)
    if not cluster or rows.ndim != 2 or not len(rows):
        raise ValueError("niceness needs at least one network and one point.")
    outputs = centre(rows)
    sizes = np.linalg.norm(outputs, axis=1)
    moves = np.array([np.linalg.norm(net(rows) - outputs, axis=1) for net in cluster])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(moves > 0, moves / sizes, 0.0)
    eps, largest = float(ratios.max()), float(sizes.max())
    gamma = 0.0 if eps == 0.0 else eps * largest if largest > 0 else math.inf
    return Niceness(eps, gamma, np.asarray(moves.max(axis=1)), largest)


def mixture_noise_scale(
    betas: ArrayLike,
    margin: float,
    *,
    depth: int,
    side: int,
    input_norm: float,
    failure: float,
    weights: ArrayLike | None = None,
    form: Literal["corrected", "printed"] = "corrected",
) -> float:
    r"""Return a noise under which a mixture of networks keeps its outputs within a margin.

    .. math::
        \sigma = \frac{1}{\sqrt{2 h \log(2 d h / p)}}
            \min_i \min\Big\{\frac{\beta_i}{d}, \frac{\gamma}{e d B \beta_i^{d-1}}\Big\}

    For layers of equal norm :math:`\beta_i` and weights from :math:`\sum_i p_i N(A_i, \sigma^2 I)`,
    the output differs from that of the drawn centre by more than :math:`\gamma` with probability at most
    p. The printed form divides by :math:`k\, p_i` as well and has k in the logarithm; it is too large
    for a component of small weight and large norm.

    Args:
        betas: :math:`\beta_i`.
        margin: :math:`\gamma`.
        depth: d.
        side: h, the largest side of a layer.
        input_norm: B.
        failure: p.
        weights: :math:`p_i`, for the printed form; None is 1/k each.
        form: ``"corrected"`` or ``"printed"``.

    Mukherjee 2020, Theorem 6.2.1.
    """
    beta = np.asarray(betas, dtype=np.float64).ravel()
    if not beta.size or not (np.isfinite(beta) & (beta > 0)).all():
        raise ValueError(f"betas must be positive and finite, at least one; got {beta}.")
    g, B, p = (
        positive("margin", margin),
        positive("input_norm", input_norm),
        probability("failure", failure),
    )
    reach = math.e * depth * B * beta ** (depth - 1)
    if form == "corrected":
        tail = math.sqrt(2 * side * math.log(2 * depth * side / p))
        return float(np.min(np.minimum(beta / depth, g / reach))) / tail
    if form != "printed":
        raise ValueError(f"form must be 'corrected' or 'printed'; got {form!r}.")
    k = beta.size
    shares = np.full(k, 1.0 / k) if weights is None else np.asarray(weights, dtype=np.float64)
    tail = math.sqrt(2 * side * math.log(2 * depth * side * k / p))
    return float(np.min(np.minimum(beta / depth, g / (k * shares * reach)))) / tail
