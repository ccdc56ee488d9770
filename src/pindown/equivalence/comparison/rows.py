"""What comparing two models on rows of data returns: on the rows, on new ones like them, around each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.confidence import clopper_pearson, quantile_upper
from pindown.equivalence.tuning import ROWS_DELTA, ROWS_QUANTILE, ROWS_QUANTILES
from pindown.evidence import Assumption, Kind
from pindown.text import card, rounded_up

Known: TypeAlias = Literal["proved", "refuted", "open"]
RowVerdict: TypeAlias = Literal["flips", "flips nearby", "no flips found", "no flips", "compared"]

INDEPENDENT_ROWS = Assumption("the rows are independent draws of one distribution, new rows too")


@dataclass(frozen=True, eq=False, repr=False)
class RowDiff:
    r"""Two models on n rows of data, on new rows like them, and on the ball around each row.

    *On the rows* outputs are those of float64. A row is *flipped* if the two choose different classes
    there; where the largest output of one of them is not alone, it is a *tie* and no flip.

    *On new rows* of the same distribution the share of flips is at most ``flip_rate``, and the 95 %
    quantile of the gap at most ``gap_quantile``, each with confidence :math:`1 - \delta` if rows are
    independent.

    *Around each row*, for all x with :math:`\|x - x_i\|_\infty \le r` (in the box, if there is one), the
    gap is proved to lie between ``gap_lower`` and ``gap_upper``.

    Attributes:
        X: The rows, (n, d).
        outputs: The outputs of the first and of the second model at the rows, (n, k) each.
        radius: Radius of the balls.
        margin: How sure both must be for classes around a row to count as different; None if it was not
            asked.
        gap_lower: The largest gap found in the ball, proved, rounded down, (n,).
        gap_upper: A proved upper bound on the gap in the ball, (n,); infinite where there is none.
        same_label: For each row ``"proved"`` if no input of the ball is put into different classes,
            ``"refuted"`` if one in ``witnesses`` is, else ``"open"``.
        witnesses: Inputs that are put into different classes, by row.
        farthest: Where in the balls the largest gaps were found, (n, d).
        seconds: How long it took.
        delta: Probability with which a statement about new rows may fail.
    """

    X: Array
    outputs: tuple[Array, Array]
    radius: float
    margin: float | None
    gap_lower: Array
    gap_upper: Array
    same_label: tuple[Known, ...]
    witnesses: Mapping[int, Array] = field(default_factory=lambda: MappingProxyType({}))
    farthest: Array | None = None
    seconds: float = 0.0
    delta: float = ROWS_DELTA

    def __len__(self) -> int:
        return len(self.X)

    # ------------------------------------------------------------------ on the rows

    @property
    def verdict(self) -> RowVerdict:
        """The answer on data in a word.

        ``"flips"`` if a row flipped, ``"flips nearby"`` if an input near a row does, ``"no flips
        found"`` if proofs were asked for and rows are open, else ``"no flips"``; ``"compared"`` without
        classes.
        """
        if self.flipped.any():
            return "flips"
        if self.margin is not None and self.count("refuted"):
            return "flips nearby"
        if self.margin is not None and self.count("open"):
            return "no flips found"
        return "no flips" if self.classified else "compared"

    @cached_property
    def gaps(self) -> Array:
        """The absolute differences of all outputs at the rows, (n, k)."""
        return np.abs(self.outputs[0] - self.outputs[1])

    @cached_property
    def gap(self) -> Array:
        """The largest absolute difference of any output at each row, (n,)."""
        return np.asarray(self.gaps.max(axis=1))

    @property
    def classified(self) -> bool:
        """Whether there are classes: two outputs or more."""
        return self.outputs[0].shape[1] > 1

    @cached_property
    def labels(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The classes that the two models choose at the rows, (n,) each: the first largest output."""
        return np.argmax(self.outputs[0], axis=1), np.argmax(self.outputs[1], axis=1)

    @cached_property
    def tied(self) -> NDArray[np.bool_]:
        """Whether the largest output of one of the models is not alone, (n,)."""
        if not self.classified:
            return np.zeros(len(self), bool)
        tops = [np.sort(made, axis=1)[:, -2:] for made in self.outputs]
        return np.asarray((tops[0][:, 0] == tops[0][:, 1]) | (tops[1][:, 0] == tops[1][:, 1]))

    @cached_property
    def flipped(self) -> NDArray[np.bool_]:
        """Whether the models choose different classes at the row, ties left out, (n,)."""
        return np.asarray((self.labels[0] != self.labels[1]) & ~self.tied)

    @property
    def flips(self) -> NDArray[np.intp]:
        """The numbers of the flipped rows, counted from 0."""
        return np.flatnonzero(self.flipped)

    @property
    def worst(self) -> NDArray[np.intp]:
        """The numbers of all rows, those of the largest gap first."""
        return np.argsort(-self.gap, kind="stable")

    @property
    def scale(self) -> float:
        """The largest absolute output at the rows."""
        return float(max(np.abs(made).max(initial=0.0) for made in self.outputs))

    # ------------------------------------------------------------------ on new rows like these

    @cached_property
    def flip_rate(self) -> float:
        r"""Upper confidence limit for the share of flips among new rows: Clopper and Pearson's."""
        return clopper_pearson(int(self.flipped.sum()), len(self), self.delta)

    @cached_property
    def gap_quantile(self) -> float:
        """Upper confidence limit for the 95 % quantile of the gap; infinite for fewer than 59 rows."""
        return quantile_upper(self.gap, ROWS_QUANTILE, self.delta)

    @cached_property
    def gap_quantiles(self) -> dict[float, float]:
        """Upper confidence limits for some quantiles of the gap, each with confidence 1 - delta."""
        return {share: quantile_upper(self.gap, share, self.delta) for share in ROWS_QUANTILES}

    @property
    def kind(self) -> Kind:
        """How ``flip_rate`` and ``gap_quantile`` are known."""
        return "probability"

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What statements about new rows rest on."""
        return (INDEPENDENT_ROWS,)

    # ------------------------------------------------------------------ around each row

    def count(self, known: Known) -> int:
        """Return how many rows are ``"proved"``, ``"refuted"`` or ``"open"``."""
        return self.same_label.count(known)

    _repr_html_ = card

    def __repr__(self) -> str:
        n = len(self)
        parts = [f"largest gap {self.gap.max():.3g}"]
        if self.classified:
            parts.insert(0, f"flips {int(self.flipped.sum()):,}, ties {int(self.tied.sum()):,}")
            parts.append(f"new rows: at most {rounded_up(self.flip_rate)} flip")
        if self.margin is not None:
            parts.append(
                f"within {self.radius:g}: {self.count('proved'):,} proved, "
                f"{self.count('refuted'):,} refuted, {self.count('open'):,} open"
            )
        elif isfinite(self.gap_upper.max()):
            parts.append(f"within {self.radius:g}: at most {rounded_up(float(self.gap_upper.max()))}")
        return f"RowDiff({n:,} rows: {'; '.join(parts)})"
