r"""The margin bound with spectral norms, every constant tracked: sharp, corrected and as printed.

The prior is :math:`N(0, \sigma^2 I)` over all weights, the posterior :math:`N(w, \sigma^2 I)`
conditioned on noise that the margins absorb. Three forms differ in how :math:`\sigma` is found and paid
for.

``"sharp"``. With :math:`G = \prod_l (s_l + \sigma T_l) - \prod_l s_l` the noise moves outputs at x by at
most :math:`\|x\| G` (see :mod:`~pindown.guarantees.bounds.perturbation`), so a noisy mistake on the
sample needs a margin of at most :math:`\sqrt2 \|x\| G`. G, that is the margin, the norms and the largest
input are free to be chosen on the sample; only the scale comes from a fixed list.

``"corrected"``. The source's formula for layers of equal norm, with h at least every side of a layer,
the geometric mean of norms from a grid on the corrected interval and the margin from a second grid.

``"printed"``. The source's formula word by word; what is wrong with it is listed as violated
assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.bound import (
    INDEPENDENT,
    Assumption,
    Bound,
    outward,
    positive,
    probability,
)
from pindown.guarantees.bounds.gaussians import mixture_exponent
from pindown.guarantees.bounds.grids import scale_below
from pindown.guarantees.bounds.margins import conditioned_kl
from pindown.guarantees.bounds.pac_bayes import risks_from_levels
from pindown.guarantees.bounds.perturbation import noise_scale
from pindown.guarantees.bounds.representatives import (
    REPRESENTATIVES,
    Representative,
    WeightList,
    representative,
)
from pindown.guarantees.bounds.sample import Sample, reach_of_inputs, read_network, read_sample
from pindown.guarantees.bounds.spectral_source import corrected_bound, preference, printed_bound
from pindown.network import ReluNetwork
from pindown.rounding import norm_up

Form: TypeAlias = Literal["sharp", "corrected", "printed"]
_SUCCESSES = (0.5, 0.9, 0.99, 0.999)
_MARGIN_QUANTILES = tuple(i / 16 for i in range(16))
_COPIES = {
    "given": "the weights as given",
    "layers": "the copy with layers of equal spectral norm",
    "scaled": "the copy with layers scaled for the least divergence",
    "units": "the copy with balanced units and layers scaled for the least divergence",
}


def spectral_margin_bound(
    net: ReluNetwork | WeightList,
    X: ArrayLike,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    form: Form = "sharp",
    representative: Representative | Literal["best"] = "best",
    margin: float | None = None,
    input_norm: float | None = None,
    centres: Sequence[WeightList] | None = None,
    n_choices: int = 1,
) -> Bound:
    r"""Bound the risk of a classifier with small weight noise by its margins and spectral norms.

    .. math::
        L \le \mathrm{kl}^{-1}\Big(\tfrac1m \#\{i : \mathrm{margin}_i \le \sqrt2 \|x_i\| G\},\
        \tfrac1m \Big[\tfrac{1}{Z}\Big(\tfrac{\|w\|^2}{2 \sigma^2} + H(Z)\Big)
            + \log\tfrac{2 \sqrt m}{\delta\, w_\sigma}\Big]\Big)

    Args:
        net: The classifier; biases count as weights of a constant input.
        X: The training sample, (m, d).
        y: Its classes.
        delta: Probability with which the bound may fail.
        form: ``"sharp"`` as above; ``"corrected"`` and ``"printed"`` are the source's.
        representative: Which copy of the function to compute it from; ``"best"`` tries all.
        margin: :math:`\gamma` of the corrected and printed forms; None: the best of a grid, paid for.
        input_norm: Bound on the norm of inputs for those forms; None takes the largest of the sample.
        centres: For ``"sharp"``: networks of the same shape, fixed before the sample was seen, around
            which the prior is a mixture, instead of zero.
        n_choices: How many such lists of centres were fixed, of which this is one.

    Example:
        >>> both = [[1.0, -1.0], [-1.0, 1.0]]
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), (both, [0, 0])])
        >>> X = np.where(np.arange(10_000) % 2, 1.0, -1.0)[:, None]
        >>> bound = spectral_margin_bound(net, X, (X[:, 0] < 0).astype(int))
        >>> round(bound.value, 3), bound.vacuous
        (0.057, False)

    Neyshabur, Bhojanapalli, Srebro 2018, Theorem 1; Mukherjee 2020, Theorem 6.1.3.
    """
    delta = probability("delta", delta)
    weights, rows = read_network(net, X)
    sample = read_sample(weights, rows, y)
    if form == "sharp":
        return _sharp(weights, sample, delta, _copies(representative, centres), centres, n_choices)
    if centres is not None:
        raise ValueError(f"centres belong to form='sharp'; got form={form!r}. See mixture_bound.")
    # Any length bounds inputs that are all zero.
    longest = float(sample.norms.max())
    B = longest or 1.0
    if input_norm is not None:
        B = reach_of_inputs(positive("input_norm", input_norm), longest, X, rows.shape[1])
    if form == "corrected":
        which = _copies(representative, None)
        return corrected_bound(weights, sample, delta, which, margin, B, input_norm is not None)
    if form == "printed":
        return printed_bound(weights, sample, delta, margin, B)
    raise ValueError(f"form must be 'sharp', 'corrected' or 'printed'; got {form!r}.")


def _copies(which: str, centres: Sequence[WeightList] | None) -> list[Representative]:
    allowed = REPRESENTATIVES if centres is None else REPRESENTATIVES[:2]
    if which == "best":
        return list(allowed)
    if which not in allowed:
        raise ValueError(f"representative must be 'best' or one of {allowed} here; got {which!r}.")
    return [name for name in allowed if name == which]


def _sharp(
    weights: WeightList,
    sample: Sample,
    delta: float,
    which: list[Representative],
    centres: Sequence[WeightList] | None,
    n_choices: int,
) -> Bound:
    best: tuple[tuple[float, bool, float], dict[str, float], str] | None = None
    for name in which:
        copy = representative(weights, name)
        # Around zero one prior serves all copies; around other centres each copy has its own.
        extra = math.log(n_choices) + (math.log(len(which)) if centres is not None else 0.0)
        distances = _distances(copy, centres, name)
        choices = _choices(copy, distances, sample, delta, extra)
        values = risks_from_levels(
            np.array([terms["empirical risk"] for terms in choices]),
            np.array([terms["level"] for terms in choices]),
        )
        for terms, value in zip(choices, values.tolist(), strict=True):
            rank = preference(value, terms["empirical risk"])
            if best is None or rank < best[0]:
                best = rank, terms, name
    assert best is not None
    (_, _, value), terms, copied = best
    assumptions = [INDEPENDENT, Assumption(f"computed from {_COPIES[copied]}", "checked")]
    if centres is not None:
        assumptions.append(Assumption("the centres were fixed before the sample was seen"))
    return Bound(
        "spectral margin" if centres is None else "spectral margin around given centres",
        value,
        delta,
        "expected risk under small weight noise",
        terms,
        tuple(assumptions),
        "Neyshabur et al. 2018; Mukherjee 2020, Theorem 6.1.3; constants sharpened",
    )


def _distances(copy: WeightList, centres: Sequence[WeightList] | None, name: Representative) -> Array:
    if centres is None:
        return np.array([copy.frobenius])
    if not centres or any(centre.shapes != copy.shapes for centre in centres):
        raise ValueError(f"centres must be networks of shapes {copy.shapes}, at least one.")
    moved = [representative(centre, name).vector for centre in centres]
    return np.array([norm_up(copy.vector - centre) for centre in moved])


def _choices(
    copy: WeightList, distances: Array, sample: Sample, delta: float, extra: float
) -> list[dict[str, float]]:
    """Return the terms for several margins and probabilities of small noise."""
    found = []
    ratios = sample.margins / (sample.factor * np.maximum(sample.norms, _TINY_NORM))
    for G in sorted({float(q) for q in np.quantile(ratios, _MARGIN_QUANTILES) if q > 0} or {1.0}):
        allowed = G * (1.0 - _BELOW)  # the row that set the quantile stays right
        risk = float(np.mean(ratios <= G * (1.0 - 0.5 * _BELOW)))
        for success in _SUCCESSES:
            choice = scale_below(noise_scale(copy.norms, copy.shapes, allowed, success=success))
            kl = mixture_exponent(distances, choice.scale)
            cost = outward(math.log(2.0 * math.sqrt(sample.n) / delta) + choice.cost + extra)
            truncated = conditioned_kl(kl, success)
            found.append(
                {
                    "empirical risk": risk,
                    "normalised margin": allowed,
                    "scale": choice.scale,
                    "kl": kl,
                    "success": success,
                    "kl of truncated posterior": truncated,
                    "log terms": cost,
                    "level": outward((truncated + cost) / sample.n),
                    "norm product": math.prod(copy.norms),
                    "frobenius": copy.frobenius,
                }
            )
    return found


_BELOW = 1e-9  # relative: more than rounding in margins and norms
_TINY_NORM = 1e-300  # of an input: a zero input has margin zero and counts as a mistake
