r"""Which atoms made a signal: a layer of ReLUs reads it off, and when that is certain.

The encoder is :math:`r = \mathrm{relu}(W y - \epsilon)`, rows of W within :math:`\delta` of the atoms.

Mukherjee 2020, Theorem 4.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.datasets.sparse_codes import SparseCodingModel
from pindown.evidence import Kind
from pindown.learn.sparse_coding.gradient_descent import checked
from pindown.rounding import gamma
from pindown.validation import integer, is_number


@dataclass(frozen=True)
class RecoveryCertificate:
    """Whether the ReLU layer finds every support, and how sure that is.

    Attributes:
        certified: Whether every atom in a support is found: no false negative, ever.
        required: The least entry for which this is proved, rounded up; certified if ``low`` is at least
            this (above it, for :func:`certify_weights`).
        low: The least non-zero entry.
        threshold: The threshold.
        false_positive: Bound on the probability that one given unit outside the support is on.
        any_false_positive: Bound on the probability that some unit outside the support is on.
    """

    certified: bool
    required: float
    low: float
    threshold: float
    false_positive: float
    any_false_positive: float

    @property
    def margin(self) -> float:
        """How far the least entry is above what is required; negative if not certified."""
        return self.low - self.required

    @property
    def kind(self) -> Kind:
        """``"exact"`` if recovery is certain, ``"probability"`` if false positives are only rare."""
        if not self.certified:
            return "heuristic"
        return "exact" if self.any_false_positive == 0.0 else "probability"

    def __bool__(self) -> bool:
        return self.certified

    def __str__(self) -> str:
        if not self.certified:
            return (
                f"not certified: entries from {self.low:.4g}, but recovery is proved only from "
                f"{self.required:.4g}"
            )
        extra = (
            "no unit outside is ever on"
            if self.any_false_positive == 0.0
            else f"some unit outside is on with probability at most {self.any_false_positive:.3g}"
        )
        return f"certified: every atom in the support is found (proved), {extra}"


def recovery_threshold(model: SparseCodingModel, delta: float) -> float:
    r"""Return the theorem's threshold :math:`\epsilon = 2 m_1 k (\delta + \mu / \sqrt n)`.

    Args:
        model: The generative model, with mean m1, sparsity k and coherence :math:`\mu / \sqrt n`.
        delta: Largest distance of a row of W to its atom.

    Example:
        >>> model = SparseCodingModel(np.eye(4), 2, low=1.0, high=3.0)
        >>> recovery_threshold(model, 0.05)
        0.4

    Mukherjee 2020, Theorem 4.3.1.
    """
    return 2.0 * model.mean * model.sparsity * (_distance(delta) + model.coherence)


def recovery_certificate(model: SparseCodingModel, delta: float) -> RecoveryCertificate:
    r"""Check the theorem's condition at finite size.

    .. math:: a \ge \frac{(b + 2 m_1)\, k\, (\delta + \mu / \sqrt n)}{1 - \delta}

    excludes false negatives. A given unit outside the support is on with probability at most
    :math:`e^{-2 k m_1^2 / (b - a)^2}`, some unit with h - k times that. If :math:`b \le 2 m_1`, as for
    all symmetric distributions, the threshold is above everything such a unit can see: then never.

    Args:
        model: The generative model, entries in [a, b].
        delta: Largest distance of a row of W to its atom, below 1.

    Returns:
        The certificate.

    Example:
        >>> model = SparseCodingModel(np.eye(4), 2, low=1.0, high=3.0)
        >>> print(recovery_certificate(model, 0.05))
        certified: every atom in the support is found (proved), no unit outside is ever on
        >>> print(recovery_certificate(model, 0.1))
        not certified: entries from 1, but recovery is proved only from 1.556

    Mukherjee 2020, Theorem 4.3.1; the probability printed there is that of one unit.
    """
    sizes = np.abs(model.dictionary).T @ np.abs(model.dictionary)
    np.fill_diagonal(sizes, 0.0)  # what rounds in the coherence
    spread = _distance(delta) + model.coherence + gamma(model.n_features) * float(sizes.max())
    k, a, b, m1 = model.sparsity, model.low, model.high, model.mean
    required = (b + 2 * m1) * k * spread / (1 - delta) * (1 + gamma(8)) if delta < 1 else float("inf")
    one = 0.0 if b <= 2 * m1 else exp(-2 * k * m1**2 / (b - a) ** 2)
    return RecoveryCertificate(
        certified=a >= required,
        required=required,
        low=a,
        threshold=recovery_threshold(model, delta),
        false_positive=one,
        any_false_positive=min(1.0, (model.n_atoms - k) * one),
    )


def certify_weights(
    W: ArrayLike,
    threshold: ArrayLike,
    *,
    sparsity: int,
    low: float,
    high: float,
    delta: float = 0.0,
) -> RecoveryCertificate:
    r"""Certify recovery from the weights alone, for every dictionary within delta of them.

    With :math:`c_i = \max_{j \ne i} |\langle W_i, W_j \rangle| + \delta \lVert W_i \rVert`, a unit
    outside a support of size k sees at most :math:`b k c_i`, and a unit inside at least
    :math:`a (\lVert W_i \rVert^2 - \delta \lVert W_i \rVert) - b (k - 1) c_i`.

    Args:
        W: Weights (h, n).
        threshold: :math:`\epsilon`, one number or one per unit.
        sparsity: Largest support k.
        low: Least non-zero entry a.
        high: Largest entry b.
        delta: Every row of W is within this distance of its atom.

    Returns:
        The certificate; false positives are excluded or not (bound 1), there is no probability.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> certify_weights(np.eye(3), 0.5, sparsity=2, low=1.0, high=2.0).kind
        'exact'
    """
    integer("sparsity", sparsity)
    V = np.asarray(W, dtype=np.float64)
    if V.ndim != 2 or not V.size or not np.isfinite(V).all():
        raise ValueError(f"W must be a finite matrix (h, n); got shape {V.shape}.")
    if not is_number(low, 0) or not is_number(high, 0) or low > high:
        raise ValueError(f"entries need 0 <= low <= high, both finite; got {(low, high)}.")
    if not np.isfinite(threshold).all():
        raise ValueError(f"threshold must be finite; got {threshold!r}.")
    up, down = 1 + gamma(V.shape[1] + 8), 1 - gamma(V.shape[1] + 8)  # for sums without cancellation
    norms = np.linalg.norm(V, axis=1)
    gram = np.abs(V @ V.T) + gamma(V.shape[1]) * (np.abs(V) @ np.abs(V).T)
    np.fill_diagonal(gram, 0.0)
    mixed = (gram.max(axis=1) + _distance(delta) * norms) * up
    eps = np.broadcast_to(np.asarray(threshold, dtype=np.float64), norms.shape)
    gain = norms * (norms * down - delta * up) * down
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(gain > 0.0, (eps + high * (sparsity - 1) * mixed) / gain * up, np.inf)
    silent = bool((high * sparsity * mixed * up <= eps).all())
    required = float(needed.max())
    return RecoveryCertificate(
        certified=low > required,  # at equality the unit is exactly zero
        required=required,
        low=float(low),
        threshold=float(eps.max()),
        false_positive=0.0 if silent else 1.0,
        any_false_positive=0.0 if silent else 1.0,
    )


def recover_support(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike) -> NDArray[np.bool_]:
    r"""Return which units are on: :math:`W y - \epsilon > 0`.

    Args:
        W: Weights (h, n).
        Y: Signals, one per row.
        threshold: :math:`\epsilon`, one number or one per unit.

    Example:
        >>> recover_support(np.eye(3), [[0.0, 2.0, 0.1]], 0.5)
        array([[False,  True, False]])
    """
    V, signals, eps = checked(W, Y, threshold)
    return signals @ V.T > eps


def exponents_recover(p: float, nu_squared: float, coherence_exponent: float) -> bool:
    r"""Return whether recovery holds for all large h: :math:`p + \nu^2 < \xi`, both positive.

    Here the sparsity is :math:`h^p`, the distance :math:`O(h^{-p - \nu^2})`, the coherence
    :math:`h^{-\xi}` and the least entry :math:`\Omega(b\, h^{-\nu^2})`.

    >>> exponents_recover(0.1, 0.3, 0.5), exponents_recover(0.3, 0.3, 0.5)
    (True, False)

    Mukherjee 2020, Theorem 4.3.1.
    """
    return min(p, nu_squared) > 0.0 and p + nu_squared < coherence_exponent


def _distance(delta: float) -> float:
    if not is_number(delta, 0):
        raise ValueError(f"delta must be a distance, zero or positive; got {delta!r}.")
    return float(delta)
