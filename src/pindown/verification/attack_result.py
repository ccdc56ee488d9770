"""What an attack found: one form for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.relaxation.lp_norms import Norm


@dataclass(frozen=True, eq=False, repr=False)
class AttackResult:
    """Changed inputs and what became of them; the first axis counts inputs.

    Attributes:
        X: The changed inputs, (n, d).
        success: Whether the attack reached its goal as float64 evaluates the network: another class, or
            the target, (n,).
        distance: Length of each change in ``norm``, (n,).
        margin: The score that the attack lowers: at most 0 where it succeeded, (n,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        n_gradients: How many gradients were computed for one input at most.
        exact: Whether theory says that no attack does better.
    """

    X: Array
    success: NDArray[np.bool_]
    distance: Array
    margin: Array
    norm: Norm
    n_gradients: int = 0
    exact: bool = False

    def __repr__(self) -> str:
        n, hits = len(self.success), int(self.success.sum())
        kind = "no attack does better" if self.exact else "a better one may exist"
        if not hits:
            return f"AttackResult(none of {n:,} in {self.norm}; {kind})"
        median = float(np.median(self.distance[self.success]))
        return f"AttackResult({hits:,} of {n:,} in {self.norm}, median distance {median:.4g}; {kind})"
