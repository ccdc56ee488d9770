"""What a fitted detector says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pindown.affine import Array
from pindown.learn.one_class.evidence import Prices

if TYPE_CHECKING:
    from pindown.learn.one_class.detector import LocalMaximaDetector


@dataclass(frozen=True)
class DetectorReport:
    r"""Sizes of what was learned, beside what the theory asks for.

    Theorem 1: a network of one variable whose local maxima are m given points needs at least 2m - 1
    hidden units and can do with 2m; a network that is the indicator of the points needs 3m.

    Attributes:
        n_parameters: Numbers in all networks c and h.
        n_hidden_units: ReLU units of h, the mean of all members; None unless they have one hidden layer,
            the case of the theorem.
        most_maxima: Largest m with 2m - 1 <= that number: more points on a line within the box of 8
            standard deviations cannot all be maxima. (At the sides of the box h has further kinks.)
        maxima_units: Units that m = ``most_maxima`` maxima can be made with, 2m.
        indicator_units: Units that the indicator of as many points needs, 3m.
        n_epochs: Epochs made, all members together.
        prices: What telling rows from made-up ones costs the networks c and their untrained copies, or
            None where they are not trained on it.
        kind: ``"estimate"``: a count for networks of one variable, a guide for others.
    """

    n_parameters: int
    n_hidden_units: int | None
    most_maxima: int | None
    maxima_units: int | None
    indicator_units: int | None
    n_epochs: int
    prices: Prices | None = None
    kind: str = "estimate"

    def __str__(self) -> str:
        text = f"{self.n_parameters:,} parameters, {self.n_epochs} epochs"
        if self.prices is not None:
            text += f", loss of c {self.prices.trained:.2f} (untrained {self.prices.untrained:.2f})"
        if self.n_hidden_units is None:
            return text
        return (
            f"{text}; h has {self.n_hidden_units} hidden units: along a line among the data it can have "
            f"at most {self.most_maxima} local maxima (an indicator of them would need "
            f"{self.indicator_units} units)"
        )


def detector_report(detector: LocalMaximaDetector) -> DetectorReport:
    """Count."""
    nets = [*detector.ensemble_.members, *detector.ensemble_.comparators]
    description = detector.plan_.comparator
    widths = description["hidden"] if description["kind"] == "perceptron" else []
    units = widths[0] * len(detector.ensemble_.comparators) if len(widths) == 1 else None
    most = None if units is None else (units + 1) // 2
    return DetectorReport(
        n_parameters=sum(p.numel() for net in nets for p in net.parameters()),
        n_hidden_units=units,
        most_maxima=most,
        maxima_units=None if most is None else 2 * most,
        indicator_units=None if most is None else 3 * most,
        n_epochs=len(detector.history_),
        prices=detector.prices_,
    )


def two_network_bound(
    detector: LocalMaximaDetector, rows: Array, *, radius: float, margins: Any, delta: float
) -> Any:
    """Return the PAC-Bayes bound of the potential of h and the learned part of c.

    Wolf et al. 2019, Lemma 2.
    """
    from pindown.guarantees.bounds.local_maxima import local_maxima_bound
    from pindown.learn.one_class.conversion import learned_network, potential_network

    return local_maxima_bound(
        potential_network(detector),
        learned_network(detector),
        rows,
        radius=radius,
        margins=margins,
        delta=delta,
    )
