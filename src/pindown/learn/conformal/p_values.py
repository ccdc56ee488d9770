r"""Conformal p-values: how many held-out members look at least as strange as a new row.

With scores :math:`s_1, \dots, s_n` of members that the detector has not seen, higher for members,

.. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{n + 1} .

If the held-out members and a new member are exchangeable (in every order equally likely, as independent
rows of one source are), the rank of the new one is uniform up to ties, so that

.. math:: P[p(x) \le \alpha] \le \frac{\lfloor \alpha (n + 1) \rfloor}{n + 1} \le \alpha ,

with equality in the first place if no scores are tied. The probability is over held-out and new rows
together: with other held-out rows the rate on new ones would have been a bit more or less. Split
calibration holds out one part, and the statement is a theorem. Cross-conformal calibration holds out
each part in turn and counts each row below the new one under the detector that has not seen it: all
rows take part, and for K parts what is proved is


.. math:: P[p \le \alpha] \le 2 \alpha + 2 (K - 1) / (n + K) ,

because :math:`(n + 1)\, p + K - 1 = \sum_k (n_k + 1)\, p_k` and twice a mean of p-values is a p-value
(Vovk and Wang 2020). That :math:`\alpha` itself is kept is what one finds.

Benjamini and Hochberg's procedure on the p-values of a batch keeps the expected share of members among
the rows that are called outliers at or below the nominal one; p-values of one split are positively
dependent in the way that this needs (Bates et al. 2023, Theorem 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.validation import probability, refuse

METHODS = ("split", "cross")


def held_out_parts(
    n: int, method: str, share: float, n_folds: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Return the row numbers, ascending, that each detector is not to see.

    Args:
        n: Rows.
        method: ``"split"``, one part, or ``"cross"``, every row in one part.
        share: Share of the rows in the one part of a split.
        n_folds: Parts of ``"cross"``; no more than there are rows.
        rng: Draws the parts.

    Example:
        >>> parts = held_out_parts(5, "cross", 0.5, 2, np.random.default_rng(0))
        >>> sorted(np.concatenate(parts).tolist())
        [0, 1, 2, 3, 4]
    """
    order = rng.permutation(n)
    if method == "split":
        return [np.sort(order[: min(max(round(share * n), 1), n - 1)])]
    return [np.sort(part) for part in np.array_split(order, min(n_folds, n))]


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Scores of members by detectors that have not seen them.

    Attributes:
        parts: One array for each detector, in the order of the rows; higher for members.
        rows: The row numbers of the scores, alike; empty where they are not known.
    """

    parts: tuple[Array, ...]
    rows: tuple[NDArray[np.int64], ...] = ()

    @property
    def n(self) -> int:
        """Number of scores."""
        return sum(map(len, self.parts))

    @property
    def kind(self) -> Kind:
        """``"probability"`` for a split, ``"estimate"`` for cross-conformal p-values."""
        return "probability" if len(self.parts) <= 1 else "estimate"

    @cached_property
    def _sorted(self) -> list[Array]:
        return [np.sort(part) for part in self.parts]

    def counts(self, scores: Sequence[ArrayLike]) -> NDArray[np.int64]:
        """Return how many held-out scores are at most those of new rows, by the same detectors, (m,)."""
        if len(scores) != len(self.parts):
            raise ValueError(f"scores of {len(self.parts)} detectors are needed; got {len(scores)}.")
        found = [_finite_or_ordered(given) for given in scores]
        return np.sum(
            [
                np.searchsorted(part, new, side="right")
                for part, new in zip(self._sorted, found, strict=True)
            ],
            axis=0,
        )

    def p_values(self, scores: Sequence[ArrayLike]) -> Array:
        """Return the p-values of new rows, in (0, 1]."""
        return (1 + self.counts(scores)) / (self.n + 1)

    def ranks(self, scores: Sequence[ArrayLike]) -> Array:
        r"""Return the p-values, refined where they are the same: what is farther below comes first.

        .. math:: \Big(\#\{i : s_i \le s(x)\} + \tfrac12 + \tfrac12 r(x)\Big) / (n + 1)

        with r = 1 where x is not below all held-out rows of any part, and falling to 0 far below.
        """
        below = []
        for part, new in zip(self._sorted, scores, strict=True):
            finite = part[np.isfinite(part)]
            spread = float(finite.std()) if len(finite) else 0.0
            with np.errstate(over="ignore", invalid="ignore"):
                gap = np.maximum(part[0] - np.asarray(new, dtype=float), 0) / (spread or 1.0)
            below.append(1 / (1 + np.nan_to_num(gap, nan=0.0, posinf=np.inf)))
        return (self.counts(scores) + 0.5 + 0.5 * np.mean(below, axis=0)) / (self.n + 1)

    def threshold(self, false_alarms: float) -> float:
        """Return the rank that separates p-values of at most a rate from larger ones."""
        possible = np.arange(1, self.n + 2) / (self.n + 1)
        return (int((possible <= false_alarms).sum()) + 0.25) / (self.n + 1)


def _finite_or_ordered(scores: ArrayLike) -> Array:
    values = np.asarray(scores, dtype=float).ravel()
    if np.isnan(values).any():
        raise ValueError(f"the detector's scores hold NaN, of {int(np.isnan(values).sum())} rows.")
    return values


def conformal_p_values(held_out: ArrayLike, scores: ArrayLike) -> Array:
    """Return conformal p-values of new rows, in (0, 1].

    Args:
        held_out: Scores of members that the detector has not seen, (n,); higher for members.
        scores: Scores of new rows by the same detector, (m,).

    Example:
        The first row is below all three members, the second above one of them:

        >>> conformal_p_values([0.0, 1.0, 2.0], [-1.0, 0.5]).tolist()
        [0.25, 0.5]

    Vovk, Gammerman and Shafer 2005; of outliers: Bates et al. 2023.
    """
    return HeldOutScores((_finite_or_ordered(held_out),)).p_values([scores])


def benjamini_hochberg(p_values: ArrayLike, fdr: float) -> NDArray[np.bool_]:
    r"""Return which hypotheses are rejected, so that the false discovery rate is at most ``fdr``.

    With the p-values in order, those up to the largest :math:`p_{(k)} \le k\, q / m` are rejected.

    Args:
        p_values: One for each row, in [0, 1].
        fdr: q, above 0 and below 1.

    Example:
        0.03 is above 0.05 / 4 but below 0.05 * 3 / 4:

        >>> benjamini_hochberg([0.03, 0.01, 0.8, 0.03], 0.05).tolist()
        [True, True, False, True]

    Benjamini and Hochberg 1995.
    """
    from scipy.stats import false_discovery_control

    fdr = probability("fdr", fdr)
    values = np.asarray(p_values, dtype=float).ravel()
    if not len(values):
        return np.zeros(0, dtype=bool)
    return np.asarray(false_discovery_control(values) <= fdr)


def called_outliers(p_values: Array, fdr: float | None, false_alarms: float | None) -> NDArray[np.bool_]:
    """Return which rows are outliers: at a false discovery rate of the batch, or a rate of false alarms.

    Raises:
        ValueError: Unless exactly one of both is given.
    """
    if (fdr is None) == (false_alarms is None):
        refuse("fdr or false_alarms", "given, one of both", (fdr, false_alarms))
    if false_alarms is None:
        return benjamini_hochberg(p_values, 0.0 if fdr is None else fdr)
    return p_values <= probability("false_alarms", false_alarms)
