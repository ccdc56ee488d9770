r"""PAC-Bayes with margins: noise on the weights that a margin on the sample absorbs.

Let Q be a distribution of weights around w under which, with probability at least Z, no output moves by
:math:`\gamma / 4` or more at any point of the sample. Q conditioned on that event, :math:`\tilde Q`,
makes no more mistakes on the sample than w does at margin :math:`\gamma / 2`, and

.. math:: \mathrm{KL}(\tilde Q \| P) \le \frac{\mathrm{KL}(Q \| P) + H(Z)}{Z}, \qquad
          H(Z) = -Z \log Z - (1 - Z) \log (1 - Z).

The margin may be chosen on the sample for free: only the prior has to be fixed before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.confidence import clopper_pearson
from pindown.evidence import Assumption
from pindown.guarantees.bounds._samples import margins_of
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound, outward
from pindown.guarantees.bounds.pac_bayes import risk_from_level
from pindown.guarantees.bounds.rescaled_weights import (
    WeightList,
    homogeneous,
    homogeneous_rows,
)
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.validation import integer, positive, probability, refuse, share


def margin_risk(outputs: ArrayLike, y: ArrayLike, margin: float = 0.0) -> float:
    r"""Return the share of rows whose right output does not win by more than the margin.

    .. math:: \hat L_\gamma = \tfrac1m \#\{i : f(x_i)_{y_i} \le \gamma + \max_{j \ne y_i} f(x_i)_j\}

    Ties count as mistakes. With one output, the margin is the output times :math:`\pm 1`.

    Args:
        outputs: Outputs, (m, k).
        y: Classes 0 to k - 1; {0, 1} or {-1, 1} for one output.
        margin: :math:`\gamma`.

    Example:
        >>> margin_risk([[2.0, 1.0], [0.0, 3.0]], [0, 1], 1.0), margin_risk([[1.0, 1.0]], [0])
        (0.5, 1.0)

    Mukherjee 2020, Definition 22.
    """
    return float(np.mean(margins_of(outputs, y) <= margin))


def conditioned_kl(kl: float, success: float) -> float:
    r"""Bound the divergence of a posterior conditioned on an event of probability at least Z.

    .. math:: (\mathrm{KL} + H(Z)) / Z

    Example:
        >>> round(conditioned_kl(3.0, 0.5) - 6.0, 6), conditioned_kl(3.0, 1.0)
        (1.386294, 3.0)

    Mukherjee 2020, appendix 6.C, where the logarithm in the divergence is upside down.
    """
    divergence, Z = positive("kl", kl, zero=True, infinite=True), share("success", success)
    if Z == 0.0:
        return math.inf
    if Z == 1.0:
        return divergence
    entropy = -Z * math.log(Z) - (1.0 - Z) * math.log1p(-Z)
    return outward((divergence + entropy) / Z)


def margin_bound(
    risk: float,
    kl: float,
    n: int,
    delta: float = 0.05,
    *,
    success: float = 0.5,
    variant: Literal["sharp", "as_printed"] = "sharp",
) -> Bound:
    r"""Bound the risk of a posterior conditioned on small noise.

    .. math:: L \le \mathrm{kl}^{-1}\Big(\hat L_{\gamma/2}, \frac1n \Big[\frac{\mathrm{KL} + H(Z)}{Z}
              + \log\frac{2 \sqrt n}{\delta}\Big]\Big), \qquad\text{or, for } Z = \tfrac12,\quad
              L \le \hat L_{\gamma/2} + \sqrt{\frac{\mathrm{KL} + \log(3 n / \delta)}{n - 1}}.

    Args:
        risk: :math:`\hat L_{\gamma/2}` of the network without noise.
        kl: Divergence of the posterior before conditioning.
        n: Number of examples.
        delta: Probability with which the bound may fail.
        success: Z, a lower bound on the probability of small noise.
        variant: ``"sharp"``, or ``"as_printed"``, which needs Z >= 1/2.

    Example:
        >>> round(margin_bound(0.0, 10.0, 10_000).value, 4)
        0.003
        >>> round(margin_bound(0.0, 10.0, 10_000, variant="as_printed").value, 4)
        0.0483

    Mukherjee 2020, Theorem 6.1.2; Neyshabur, Bhojanapalli, Srebro 2018, Lemma 1.
    """
    hat, divergence = share("risk", risk), positive("kl", kl, zero=True, infinite=True)
    n, delta = integer("n", n, least=2), probability("delta", delta)
    Z = probability("success", success) if success != 1.0 else 1.0
    terms = {"empirical risk": hat, "kl": divergence, "success": Z}
    small_noise = Assumption(f"noise is small with probability {Z:g}")
    if variant == "as_printed":
        if Z < 0.5:
            small_noise = Assumption(f"noise is small with probability 1/2 (here {Z:g})", "violated")
        terms["complexity"] = outward(math.sqrt((divergence + math.log(3 * n / delta)) / (n - 1)))
        value = outward(hat + terms["complexity"])
    elif variant == "sharp":
        terms["kl of truncated posterior"] = conditioned_kl(divergence, Z)
        cost = math.log(2.0 * math.sqrt(n) / delta)
        terms["level"] = outward((terms["kl of truncated posterior"] + cost) / n)
        value = risk_from_level(hat, terms["level"])
    else:
        refuse("variant", "'sharp' or 'as_printed'", variant)
    prior = Assumption("the prior was fixed before the examples were seen")
    about, source = "expected risk of the truncated posterior", "Mukherjee 2020, Theorem 6.1.2"
    return Bound("margin", value, delta, about, terms, (INDEPENDENT, prior, small_noise), source)


@dataclass(frozen=True, eq=False)
class TruncatedPosterior:
    """Networks with Gaussian weight noise, kept where no output moved too far: a classifier to run.

    Attributes:
        networks: The accepted networks.
        n_drawn: How many were drawn in all.
        scale: Standard deviation of the noise.
        deviation: The largest move of an output at a sample point that is accepted.
        largest_moves: The largest move of each accepted network.
    """

    networks: tuple[WeightList, ...]
    n_drawn: int
    scale: float
    deviation: float
    largest_moves: Array

    @property
    def acceptance(self) -> float:
        """Share of draws that were accepted: an estimate of Z."""
        return len(self.networks) / self.n_drawn

    def success(self, delta: float) -> float:
        """Return a lower bound on Z that fails with probability at most delta."""
        rejected = self.n_drawn - len(self.networks)
        return 1.0 - clopper_pearson(rejected, self.n_drawn, probability("delta", delta))

    def __str__(self) -> str:
        return (
            f"{len(self.networks)} of {self.n_drawn} networks with weight noise {self.scale:.4g} move "
            f"no output by {self.deviation:.4g} (estimate)"
        )


@on_network
def truncated_posterior(
    net: ReluNetwork | WeightList,
    X: ArrayLike,
    *,
    scale: float,
    margin: float,
    n_draws: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> TruncatedPosterior:
    r"""Draw from :math:`N(w, \sigma^2 I)` given that no output moves by :math:`\gamma/4` on the sample.

    Args:
        net: The network; biases count as weights of a constant input.
        X: The sample, (m, d).
        scale: :math:`\sigma`.
        margin: :math:`\gamma`.
        n_draws: How many networks to draw; accepted or not.
        random_state: Seed or generator.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])])
        >>> drawn = truncated_posterior(net, [[1.0]], scale=0.01, margin=1.0, random_state=0)
        >>> drawn.acceptance, bool(drawn.largest_moves.max() < 0.25)
        (1.0, True)

    Mukherjee 2020, Theorem 6.1.2 and appendix 6.C.
    """
    sigma, g = positive("scale", scale), positive("margin", margin)
    draws = integer("n_draws", n_draws)
    rng = np.random.default_rng(random_state)
    if isinstance(net, WeightList):
        weights, rows = net, np.asarray(X, dtype=np.float64)
    else:
        weights, rows = homogeneous(net), homogeneous_rows(net, np.asarray(X, dtype=np.float64))
    if not len(rows):
        raise ValueError("X is empty; give at least one point.")
    centre, kept, moves = weights(rows), [], []
    for _ in range(draws):
        noise = sigma * rng.standard_normal(weights.vector.size)
        drawn = weights.shifted(weights.vector + noise)
        move = float(np.max(np.abs(drawn(rows) - centre)))
        if move < g / 4:
            kept.append(drawn)
            moves.append(move)
    return TruncatedPosterior(tuple(kept), draws, sigma, g / 4, np.array(moves))
