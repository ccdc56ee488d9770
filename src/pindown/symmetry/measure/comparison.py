"""A symmetry before and after training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.symmetry.measure.errors import SymmetryError, equivariance, invariance
from pindown.symmetry.measure.families import Family


@dataclass(frozen=True, eq=False)
class SymmetryChange:
    """What training did to a symmetry.

    Attributes:
        before: Of the model before training.
        after: Of the model after it.
    """

    before: SymmetryError
    after: SymmetryError

    @property
    def ratio(self) -> float:
        """Error per spread of outputs, after divided by before: below one training learned symmetry.

        Two models without any error are as symmetric as each other, 1.
        """
        first, second = _per_spread(self.before), _per_spread(self.after)
        if first == second:
            return 1.0
        return second / first if first else np.inf

    def __str__(self) -> str:
        factor = max(self.ratio, 1 / self.ratio if self.ratio else np.inf)
        words = f"{'less' if self.ratio > 1 else 'more'} symmetric by a factor of {factor:.3g}"
        return (
            f"{self.before.question} under {self.before.family}: {_per_spread(self.before):.3g} of the "
            f"spread of outputs before training, {_per_spread(self.after):.3g} after; "
            f"{'as symmetric as before' if self.ratio == 1 else words} (estimate, n = {self.after.n:,})"
        )


def symmetry_change(
    before: Any, after: Any, group: Family, X: ArrayLike, *, group_out: Family | None = None
) -> SymmetryChange:
    """Measure one symmetry of a model before and after training, each against its own spread.

    Args:
        before: The model before training.
        after: The model after it.
        group: The group with its action on samples.
        X: Samples.
        group_out: The action on outputs; without it invariance is measured.

    >>> from pindown.symmetry import cyclic
    >>> X = np.array([[1.0, 2.0], [4.0, 3.0]])
    >>> change = symmetry_change(lambda X: X[:, 0], lambda X: X.sum(axis=1), cyclic(2), X)
    >>> change.ratio
    0.0
    """
    if group_out is None:
        return SymmetryChange(
            invariance(before, group, X, copies=0), invariance(after, group, X, copies=0)
        )
    return SymmetryChange(
        equivariance(before, group, group_out, X, copies=0),
        equivariance(after, group, group_out, X, copies=0),
    )


def _per_spread(found: SymmetryError) -> float:
    if found.error == 0.0:
        return 0.0
    return found.error / found.spread if found.spread else np.inf
