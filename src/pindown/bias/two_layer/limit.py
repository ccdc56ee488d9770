r"""Where gradient flow takes a two-layer ReLU network on orthogonally separable data: two neurons.

.. math:: \frac{W}{\lVert W\rVert_F} \to u\,w_+^T + z\,w_-^T, \qquad
          \frac{h(x)}{\lVert\theta\rVert^2} \to
          \frac{\rho(\langle w_+, x\rangle) - \rho(\langle w_-, x\rangle)}
               {2(\lVert w_+\rVert + \lVert w_-\rVert)}.

The constants are not in the source; they follow from its proof when both groups of neurons are there.
The two directions are the max-margin vectors of each class by itself,

.. math:: w_+ = \arg\min\lVert w\rVert^2 \ \text{s.t.}\ \langle w, x_i\rangle \ge 1 \text{ for } y_i =
          1, \qquad w_- = \arg\min\lVert w\rVert^2 \ \text{s.t.}\ \langle w, x_i\rangle \ge 1 \text{ for
          } y_i = -1,

which on orthogonally separable data have products of at most zero with the other class.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.margins.hard_margin import MaxMargin, NoMarginError, labelled, max_margin
from pindown.bias.two_layer.orthogonal import orthogonal_separability
from pindown.bias.two_layer.training import Neurons
from pindown.evidence import Kind
from pindown.validation import integer


@dataclass(frozen=True)
class TwoLayerLimit:
    r"""The predicted end of training.

    Attributes:
        positive: Unit vector (d,) that neurons with positive output weight turn to:
            :math:`w_+/\lVert w_+\rVert`. Zero if there is no positive sample.
        negative: The same for negative output weights.
        positive_norm: :math:`\lVert w_+\rVert`, one over the margin of the positive samples.
        negative_norm: :math:`\lVert w_-\rVert`.
        margins: The max-margin problems behind them.
        violated: Hypotheses of the theorem that the samples do not meet.
        kind: ``"exact"`` (the theorem applies to the samples, what remains is a start near enough to
            zero and gradient flow) or ``"heuristic"`` (a hypothesis is violated, see there).
    """

    positive: Array
    negative: Array
    positive_norm: float
    negative_norm: float
    margins: ClassMargins = field(repr=False)
    violated: tuple[str, ...]
    kind: Kind

    def __call__(self, X: ArrayLike) -> Array:
        r"""Return the limit of :math:`h(x)/\lVert\theta\rVert^2` at samples: (n, d) -> (n,)."""
        points = np.asarray(X, dtype=np.float64)
        total = 2.0 * (self.positive_norm + self.negative_norm)
        up = self.positive_norm * np.maximum(points @ self.positive, 0.0)
        down = self.negative_norm * np.maximum(points @ self.negative, 0.0)
        return np.asarray((up - down) / total)

    @property
    def group_ratio(self) -> float:
        r"""Limit of :math:`\lVert W_+\rVert_F^2/\lVert W_-\rVert_F^2` over neurons by output sign."""
        return self.positive_norm / self.negative_norm if self.negative_norm > 0 else np.inf

    def neurons(self) -> Neurons:
        r"""Return the two canonical neurons, scaled to smallest margin 1: balanced, hence a KKT point.

        Each is :math:`w/\sqrt{\lVert w\rVert}` with output weight :math:`\pm\sqrt{\lVert w\rVert}`.
        """
        parts = [
            (sign * size**0.5, unit * size**0.5)
            for sign, size, unit in (
                (1.0, self.positive_norm, self.positive),
                (-1.0, self.negative_norm, self.negative),
            )
            if size > 0
        ]
        return Neurons(np.array([unit for _, unit in parts]), np.array([a for a, _ in parts]))

    @staticmethod
    def probability(width: int) -> tuple[float, float]:
        r"""Return lower bounds for the chance that a neuron survives, and that both classes are fitted.

        Over random signs and directions of p neurons they are :math:`1 - 2^{-p}` and
        :math:`\max(0, 1 - 2(3/4)^p)`. The first alone is printed with the theorem, but a network whose
        neurons all serve one class cannot fit the other.

        >>> TwoLayerLimit.probability(1), TwoLayerLimit.probability(20)[1] > 0.99
        ((0.5, 0.0), True)
        """
        width = integer("width", width)
        return 1.0 - 0.5**width, max(0.0, 1.0 - 2.0 * 0.75**width)

    def __str__(self) -> str:
        cosine = float(self.positive @ self.negative)
        rests = "all hypotheses on the data hold" if not self.violated else "; ".join(self.violated)
        return (
            f"two neurons, of norm ratio {self.group_ratio:.4g} and cosine {cosine:.4g} "
            f"({self.kind}: {rests})"
        )


def two_layer_limit(X: ArrayLike, y: ArrayLike) -> TwoLayerLimit:
    """Predict the two directions to which a two-layer ReLU network without offsets collapses.

    The network is trained by gradient flow on the logistic loss from balanced weights near zero.
    Neurons with positive output weight turn to the max-margin direction of the positive samples, those
    with negative output weight to that of the negative samples; the rest stay where they froze, near
    zero.

    Args:
        X: Samples (n, d).
        y: Labels of at most two classes; of two the larger is positive.

    Returns:
        A :class:`TwoLayerLimit`: ``positive`` and ``negative`` are unit vectors.

    Raises:
        NoMarginError: A ValueError: zero lies in the convex hull of a class.

    Example:
        >>> limit = two_layer_limit([[2.0, 1.0], [1.0, 2.0], [-1.0, 0.0], [-2.0, -1.0]], [1, 1, -1, -1])
        >>> limit.positive.round(4).tolist(), limit.negative.round(4).tolist()
        ([0.7071, 0.7071], [-1.0, 0.0])
        >>> print(limit)
        two neurons, of norm ratio 0.4714 and cosine -0.7071 (heuristic: the support samples of the
        negative class do not span the input space)

    Phuong 2021, Theorem 3.1 (with the chance that both classes are fitted, see ``probability``).
    """
    points, labels = labelled(X, y)
    margins = class_margins(points, labels)
    violated = []
    if not orthogonal_separability(points, labels):
        violated.append("the samples are not orthogonally separable")
    units, norms = [], []
    for name, found, spans in zip(
        ("positive", "negative"), (margins.positive, margins.negative), margins.spans, strict=True
    ):
        if found is None:
            violated.append(f"there are no {name} samples")
        elif not spans:
            violated.append(f"the support samples of the {name} class do not span the input space")
        units.append(np.zeros(points.shape[1]) if found is None else found.direction)
        norms.append(0.0 if found is None else 1.0 / found.margin)
    return TwoLayerLimit(
        units[0],
        units[1],
        norms[0],
        norms[1],
        margins,
        tuple(violated),
        "heuristic" if violated else "exact",
    )


@dataclass(frozen=True)
class ClassMargins:
    r"""Max-margin vectors of the classes.

    Attributes:
        positive: That of the positive samples, None without any; ``support`` and ``weights`` index all
            samples.
        negative: That of the negative samples.
        spans: For the positive and the negative class, whether its support samples span the input space.
        alpha: Multipliers (n,): each vector is the sum of its samples times these.
        kind: ``"exact"``: two maximum-margin problems, each with its gap.
    """

    positive: MaxMargin | None
    negative: MaxMargin | None
    spans: tuple[bool, bool]
    alpha: Array = field(repr=False)
    kind: Kind = "exact"

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
