"""What can be measured, and on what: families of transformations, and samples that they move."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group
from pindown.symmetry.measure.models import Array
from pindown.symmetry.windows import Window


class Family(Protocol):
    """What can be measured: a group, a window of one, or transformations that form none."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def order(self) -> int:
        """How many elements there are."""

    @property
    def elements(self) -> tuple[Hashable, ...]:
        """Their labels."""

    def act(self, index: int, X: ArrayLike, /) -> NDArray[np.float64]:
        """Move samples by one of them."""


def as_samples(X: Any) -> Array:
    """Return samples ``(n, ...)`` as finite numbers, or say what is wrong."""
    raw = np.asarray(X.detach().cpu() if hasattr(X, "detach") else X)
    if raw.dtype.kind not in "biuf":
        raise TypeError(f"samples are real numbers; got dtype {raw.dtype}.")
    if raw.ndim < 2 or len(raw) == 0:
        raise ValueError(f"X holds samples (n, ...), n at least 1; got shape {raw.shape}.")
    samples = raw.astype(float)
    if not np.isfinite(samples).all():
        raise ValueError("samples must be finite; some hold NaN or infinity.")
    return samples


def require_family(group: Any) -> None:
    """Refuse what has no elements that act."""
    if not all(hasattr(group, name) for name in ("order", "elements", "act")):
        raise TypeError(
            f"a group or a family of transformations is needed, such as cyclic(6); got "
            f"{type(group).__name__}."
        )


def without_identity(moved: Family) -> NDArray[np.int64]:
    """Return the elements other than the identity, or all if there are no others."""
    every = np.arange(moved.order)
    if isinstance(moved, Window):
        kept = np.flatnonzero(moved.members)
    else:
        kept = every[1:] if isinstance(moved, Group) else every
    return kept if len(kept) else every
