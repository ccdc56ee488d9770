"""All bounds that apply to one network and its data, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, dense
from pindown.guarantees.bounds._samples import margins_of
from pindown.guarantees.bounds.bound import Bound, shown_confidence
from pindown.guarantees.bounds.pac_bayes import held_out_bound, occam_bound
from pindown.guarantees.bounds.spectral import spectral_margin_bound
from pindown.guarantees.bounds.weight_noise import weight_noise_bound
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.text import card, rounded_up
from pindown.validation import probability


@dataclass(frozen=True)
class BoundTable:
    """Bounds on the risk of one network, the smallest first; all of them hold at once.

    Attributes:
        bounds: Sorted by what their formulas give.
        delta: Probability with which any of them may fail.
        train_error: Share of mistakes on the training sample.
        test_error: Share of mistakes on the test sample, if there is one.
        n_train: Size of the training sample.
        n_test: Size of the test sample, or 0.
    """

    bounds: tuple[Bound, ...]
    delta: float
    train_error: float
    test_error: float | None
    n_train: int
    n_test: int

    @property
    def best(self) -> Bound:
        """The smallest bound; choosing it by looking is paid for."""
        return self.bounds[0]

    _repr_html_ = card

    def __str__(self) -> str:
        test = (
            ""
            if self.test_error is None
            else f", {self.test_error:.4g} of {self.n_test:,} test examples"
        )
        lines = [
            f"errors: {self.train_error:.4g} of {self.n_train:,} training examples{test}; bounds hold "
            f"together with probability {shown_confidence(self.delta)}",
        ]
        width = max(len(bound.name) for bound in self.bounds)
        for bound in self.bounds:
            mark = "vacuous" if bound.vacuous else bound.kind
            states = [a.status for a in bound.assumptions]
            counts = ", ".join(
                f"{states.count(s)} {s}" for s in ("checked", "assumed", "violated") if s in states
            )
            lines.append(
                f"{bound.name:<{width}}  {rounded_up(bound.formula_value):>8}  {mark:<11}  {counts}; "
                f"{bound.about}"
            )
        return "\n".join(lines)


@on_network
def bound_table(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike,
    *,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    delta: float = 0.05,
    start: Any = None,
    random_state: int = 0,
) -> BoundTable:
    """Compute every bound that applies to a classifier and its data.

    Each bound gets an equal share of delta, so that all hold at once and the smallest may be picked.

    Args:
        net: The classifier: any model.
        X: Its training sample, (m, d).
        y: Classes 0 to k - 1; {0, 1} or {-1, 1} for one output.
        X_test: Examples that were not used for training.
        y_test: Their classes.
        delta: Probability with which any of the bounds may fail.
        start: The network training started from, if known: adds bounds by the distance travelled.
        random_state: Seed of the draws of noisy networks.

    Raises:
        ValueError: If labels do not fit, or only one of ``X_test`` and ``y_test`` is given.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1.0]], [0])])  # x
        >>> X = np.where(np.arange(4000) % 2, 1.0, -1.0)[:, None]
        >>> table = bound_table(net, X, X[:, 0] > 0, X_test=X[:100], y_test=X[:100, 0] > 0)
        >>> table.test_error, table.best.name
        (0.0, 'description length')

    Mukherjee 2020, chapter 6, and the sources of the single bounds.
    """
    delta = probability("delta", delta)
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test belong together; give both or none.")
    rows, _ = net.as_rows(X)
    margins = margins_of(net(rows), y)
    labels = np.asarray(y)
    makers = _makers(net, rows, labels, margins, start, random_state)
    test_error, n_test = None, 0
    if X_test is not None and y_test is not None:
        held_out = margins_of(net(net.as_rows(X_test)[0]), y_test)
        errors, n_test = int(np.sum(held_out <= 0)), len(held_out)
        test_error = errors / n_test
        makers.append(lambda d: held_out_bound(errors, n_test, d))
    bounds = [make(delta / len(makers)) for make in makers]
    ordered = tuple(sorted(bounds, key=lambda bound: bound.formula_value))
    return BoundTable(ordered, delta, float(np.mean(margins <= 0)), test_error, len(rows), n_test)


def _makers(
    net: ReluNetwork, X: Array, y: Array, margins: Array, start: Any, seed: int
) -> list[Callable[[float], Bound]]:
    error, bits = float(np.mean(margins <= 0)), stored_bits(net)
    makers: list[Callable[[float], Bound]] = [
        lambda d: occam_bound(error, bits, len(X), d),
        lambda d: spectral_margin_bound(net, X, y, delta=d),
        lambda d: weight_noise_bound(net, X, y, delta=d, random_state=seed),
    ]
    if net.depth >= 2:
        makers.append(lambda d: spectral_margin_bound(net, X, y, delta=d, variant="corrected"))
    if start is not None:
        makers.append(lambda d: weight_noise_bound(net, X, y, delta=d, start=start, random_state=seed))
        makers.append(lambda d: spectral_margin_bound(net, X, y, delta=d, centres=[start]))
    return makers


def stored_bits(net: ReluNetwork) -> int:
    """Return the bits of all weights and biases as they are: 32 each if float32 holds them, else 64.

    One bit more says which of the two. The shape of the network counts as known.

    >>> stored_bits(ReluNetwork.from_layers([([[0.5]], [0.25])]))
    65
    >>> stored_bits(ReluNetwork.from_layers([([[0.1]], [0.0])]))
    129
    """
    numbers = np.concatenate([np.append(dense(W).ravel(), b) for W, b in net.layers])
    with np.errstate(over="ignore"):
        short = bool((numbers.astype(np.float32).astype(np.float64) == numbers).all())
    return int(numbers.size) * (32 if short else 64) + 1
