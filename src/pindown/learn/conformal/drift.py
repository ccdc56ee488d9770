"""Whether rows are exchangeable, as far as scores tell: within the held-out rows, and of a new batch.

No test can show that rows are exchangeable; these notice two frequent ways in which they are not. Both
are silent at a level of one in a thousand and less, so a warning is worth looking at.
"""

from __future__ import annotations

import math

import numpy as np

from pindown.affine import Array
from pindown.learn.conformal.p_values import HeldOutScores

LEVEL = 1e-3  # of a false warning about the order of rows
_FAR = 4.0  # standard deviations of a share, for a batch
_MIN_ROWS = 20  # rows on both sides, below which shares say nothing


class DriftWarning(UserWarning):
    """Rows look as if they were not exchangeable with those of the calibration."""


def order_drift(held_out: HeldOutScores) -> str:
    """Return words about held-out scores that change with the order of the rows, or an empty text.

    The ranks of the first half are compared with those of the second (Kolmogorov and Smirnov).

    Example:
        >>> from pindown.learn.conformal import HeldOutScores
        >>> steady, rising = np.random.default_rng(0).normal(size=200), np.arange(200.0)
        >>> order_drift(HeldOutScores((steady,), (np.arange(200),)))
        ''
        >>> order_drift(HeldOutScores((rising,), (np.arange(200),)))[:45]
        'scores of held-out rows change with the order'
    """
    from scipy.stats import ks_2samp, rankdata

    if len(held_out.rows) != len(held_out.parts) or held_out.n < 2 * _MIN_ROWS:
        return ""
    ranks = np.concatenate([rankdata(part) / (len(part) + 1) for part in held_out.parts])
    rows = np.concatenate(held_out.rows)
    late = rows >= np.median(rows)
    if not late.any() or late.all():
        return ""
    found = ks_2samp(ranks[late], ranks[~late])
    if found.pvalue >= LEVEL:
        return ""
    return (
        f"scores of held-out rows change with the order of the rows (first against second half: "
        f"p = {found.pvalue:.1g}). Error rates hold for rows drawn like all of these, not for later "
        "ones of a source that changes; if the file is only sorted, nothing is wrong."
    )


def batch_drift(p_values: Array, held_out: HeldOutScores) -> str:
    """Return words about a batch whose bulk does not look like the held-out rows, or an empty text.

    Of members, about half have a p-value above one half, whatever outliers are beside them. Many more
    than half, or so few that most rows would have to be outliers, is drift.

    Example:
        >>> from pindown.learn.conformal import HeldOutScores
        >>> rng = np.random.default_rng(0)
        >>> held_out = HeldOutScores((rng.normal(size=500),))
        >>> batch_drift(held_out.p_values([rng.normal(size=300)]), held_out)
        ''
        >>> batch_drift(held_out.p_values([rng.normal(size=300) - 2]), held_out)[:38]
        'most rows look stranger than held-out '
    """
    m, n = len(p_values), held_out.n
    if min(m, n) < _MIN_ROWS or all(len(np.unique(part)) == 1 for part in held_out.parts):
        return ""
    upper, wanted = float(np.mean(p_values > 0.5)), 1 - math.floor((n + 1) / 2) / (n + 1)
    deviation = 0.5 * math.sqrt(1 / m + 1 / n)
    if upper > wanted + _FAR * deviation:
        return (
            f"{upper:.0%} of the rows have a p-value above 1/2 instead of at most half: they are more "
            "typical than held-out members. Were they trained on, or has the source changed?"
        )
    if upper < wanted / 2 - _FAR * deviation:
        return (
            f"most rows look stranger than held-out members (only {upper:.0%} have a p-value above "
            "1/2). Unless most of them are outliers, the source has changed: calibrate again."
        )
    return ""
