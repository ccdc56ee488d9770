r"""The two max-margin vectors, one for each class.

.. math:: w_+ = \arg\min\lVert w\rVert^2 \ \text{s.t.}\ \langle w, x_i\rangle \ge 1 \text{ for } y_i =
          1, \qquad w_- = \arg\min\lVert w\rVert^2 \ \text{s.t.}\ \langle w, x_i\rangle \ge 1 \text{ for
          } y_i = -1.

Both have products *at least one* with their own class; on orthogonally separable data both have
products of at most zero with the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.margins.hard_margin import MaxMargin, max_margin
from pindown.bias.margins.signed import NoMarginError, labelled


@dataclass(frozen=True)
class ClassMargins:
    r"""Max-margin vectors of the classes.

    Attributes:
        positive: Of the positive samples, None without any; ``support`` and ``weights`` index all
            samples.
        negative: Of the negative samples.
        spans: For the positive and the negative class, whether its support samples span the input space.
        alpha: Multipliers (n,): each vector is the sum of its samples times these.
        kind: ``"exact"``: two maximum-margin problems, each with its gap.
    """

    positive: MaxMargin | None
    negative: MaxMargin | None
    spans: tuple[bool, bool]
    alpha: Array = field(repr=False)
    kind: str = "exact"

    def __str__(self) -> str:
        parts = [
            f"{name} class: norm {1 / found.margin:.6g}, {len(found.support)} support samples"
            f"{'' if spans else ' that do not span the space'}"
            for name, found, spans in zip(
                ("positive", "negative"), (self.positive, self.negative), self.spans, strict=True
            )
            if found is not None
        ]
        return "; ".join(parts)


def class_margins(X: ArrayLike, y: ArrayLike) -> ClassMargins:
    """Return the max-margin vector of each class, by itself.

    Args:
        X: Samples (n, d).
        y: Labels of at most two classes.

    Returns:
        A :class:`ClassMargins`.

    Raises:
        NoMarginError: A ValueError: zero lies in the convex hull of a class, so that no vector has
            positive products with all of it.

    Example:
        >>> found = class_margins([[2.0, 0.0], [0.0, 2.0], [-1.0, 0.0]], [1, 1, -1])
        >>> found.positive.w.round(9).tolist(), found.negative.w.round(9).tolist()
        ([0.5, 0.5], [-1.0, 0.0])
        >>> found.spans
        (True, False)

    Phuong 2021, section 3.2.
    """
    points, labels = labelled(X, y)
    alpha = np.zeros(len(points))
    found: list[MaxMargin | None] = []
    spans = []
    for sign in (1, -1):
        own = np.flatnonzero(labels == sign)
        if not len(own):
            found.append(None)
            spans.append(False)
            continue
        part = _one_class(points, own, "positive" if sign > 0 else "negative")
        with np.errstate(over="ignore", under="ignore"):
            alpha[own] = part.weights[own] / part.margin / part.margin
        found.append(part)
        spans.append(bool(np.linalg.matrix_rank(points[part.support]) == points.shape[1]))
    return ClassMargins(found[0], found[1], (spans[0], spans[1]), alpha)


def _one_class(points: Array, own: NDArray[np.int64], name: str) -> MaxMargin:
    weights = np.zeros(len(points))
    try:
        part = max_margin(points[own], np.ones(len(own)))
    except NoMarginError as error:
        weights[own] = error.weights
        failure = NoMarginError(weights, error.residual, offset=False)
        failure.args = (
            f"zero lies in the convex hull of the {name} samples (to {error.residual:.1g}), so no "
            f"vector has "
            f"positive products with all of them; move the samples or leave some out",
        )
        raise failure from None
    weights[own] = part.weights
    return replace(part, support=own[part.support], weights=weights)
