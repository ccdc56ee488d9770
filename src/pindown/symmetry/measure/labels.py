"""Symmetries of labels: transformations that no label notices."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.evidence import Kind
from pindown.symmetry.families import Family, finite_samples, require_family, without_identity
from pindown.symmetry.measure.models import as_function


@dataclass(frozen=True, eq=False)
class LabelSymmetry:
    """How often labels stay the same under a family of transformations.

    Attributes:
        agreement: Share of samples and elements, other than the identity, with an unchanged label.
        per_element: Share of samples, for each element.
        elements: Labels of the elements.
        n: How many samples.
        family: Name of the group.
        kind: Always ``"estimate"``.
    """

    agreement: float
    per_element: NDArray[np.float64] = field(repr=False)
    elements: tuple[Hashable, ...] = field(repr=False)
    n: int
    family: str
    kind: Kind = "estimate"

    @property
    def holds(self) -> bool:
        """Whether no label changed on these samples."""
        return self.agreement == 1.0

    def __str__(self) -> str:
        shown = np.floor(1000.0 * self.agreement) / 1000.0  # 100 % is said of all labels only
        return f"{shown:.1%} of labels are unchanged under {self.family} ({self.kind}, n = {self.n:,})"


def label_symmetry(labels: Any, group: Family, X: ArrayLike) -> LabelSymmetry:
    r"""Count how often :math:`L(g x) = L(x)`.

    Args:
        labels: A function from samples to labels (n,), a fitted classifier (its ``predict``), or a model
            whose largest output, or the sign of its only one, is the label.
        group: The group or transformations.
        X: Samples.

    >>> from pindown.symmetry import cyclic
    >>> parity = lambda X: X.sum(axis=1) % 2
    >>> print(label_symmetry(parity, cyclic(3), [[1, 0, 1], [1, 1, 1]]))
    100.0% of labels are unchanged under C3 (estimate, n = 2)

    Lecture course, slides on symmetries of labels.
    """
    samples = finite_samples(X)
    require_family(group)
    first = _decide(labels, samples)
    same = np.array(
        [_decide(labels, np.asarray(group.act(index, samples))) == first for index in range(group.order)]
    )
    per_element = same.mean(axis=1)
    agreement = float(same[without_identity(group)].mean())
    return LabelSymmetry(agreement, per_element, tuple(group.elements), len(samples), group.name)


def is_label_symmetry(labels: Any, group: Family, X: ArrayLike) -> bool:
    """Return whether no element changes the label of any of these samples.

    >>> from pindown.symmetry import cyclic
    >>> is_label_symmetry(lambda X: X[:, 0] > 0, cyclic(2), [[1.0, -1.0]])
    False
    """
    return label_symmetry(labels, group, X).holds


def _decide(labels: Any, X: NDArray[np.float64]) -> NDArray[Any]:
    if hasattr(labels, "fit") and hasattr(labels, "predict"):
        found = np.asarray(labels.predict(X.reshape(len(X), -1)))
    elif _is_plain(labels):
        found = np.asarray(labels(X))
    else:
        found = as_function(labels)(X)
        if found.ndim == 1 or found.shape[1:] == (1,):  # one output decides by its sign
            found = found > 0.0
    if found.shape[:1] != (len(X),):
        raise ValueError(f"there must be one label per sample; {len(X)} gave shape {found.shape}.")
    if found.ndim == 2 and found.shape[1] > 1:
        return np.asarray(found.argmax(axis=1))
    if found.ndim > 2:
        raise ValueError(f"labels are (n,) or scores (n, classes); got shape {found.shape}.")
    return found.reshape(len(X))


def _is_plain(labels: Any) -> bool:
    """Return whether it is a bare function, whose labels may be of any type."""
    return callable(labels) and not hasattr(labels, "parameters") and not hasattr(labels, "layers")
