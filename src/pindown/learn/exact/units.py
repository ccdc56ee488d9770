"""Units in which targets and weights are of order one: the search has tolerances that need them.

Units are powers of two, so that the way there and back rounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pindown.network import ReluNetwork

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """What one unit of the search is in the user's numbers.

    Attributes:
        target: Of targets and predictions; one for classes.
        mass: Of sample weights.
        loss: Of losses.
        ridge: Of the factor of the penalty.

    >>> units = Units.of(np.array([3.0, -700.0]), np.array([1.0, 5.0]), "squared")
    >>> units.target, units.mass, units.loss
    (512.0, 4.0, 1048576.0)
    """

    target: float
    mass: float
    loss: float
    ridge: float

    @classmethod
    def of(cls, y: Array, mass: Array, loss: str) -> Units:
        """Take the largest target and the largest weight, rounded down to a power of two."""
        heaviest = _power_of_two(float(mass.max()))
        if loss in ("hinge", "logistic"):
            return cls(1.0, heaviest, heaviest, heaviest)
        target = _power_of_two(float(np.abs(y).max()))
        with np.errstate(over="ignore"):  # the caller sees an infinite loss
            if loss == "absolute":
                return cls(target, heaviest, float(np.float64(heaviest) * target), heaviest / target)
            return cls(target, heaviest, float(np.float64(target) * target * heaviest), heaviest)

    def network(self, network: ReluNetwork) -> ReluNetwork:
        """Return a network of the search, which has output weights of size one, in the user's units."""
        hidden, output = network.layers
        return ReluNetwork.from_layers(
            [
                (self.target * np.asarray(hidden.weight), self.target * hidden.bias),
                (np.asarray(output.weight), self.target * output.bias),
            ]
        )


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0
