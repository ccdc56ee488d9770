"""Links: functions through which a gate answers, non-decreasing with a known Lipschitz constant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from pindown.affine import Array
from pindown.learn.gates.numbers import positive
from pindown.network import ReluNetwork

LinkFunction = Callable[[Array], Array]

# A slope measured between two float64 values is off by about this much of the values' size.
_SLOPE_ROUNDING = 1e-9
_LAST_PLACES = 4  # units in the last place that evaluating a link may be off by


@dataclass(frozen=True)
class Link:
    r"""A non-decreasing function :math:`\sigma` with :math:`|\sigma(u) - \sigma(v)| \le L |u - v|`.

    Attributes:
        name: Its name, or ``"callable"``.
        function: Maps an array to an array of the same shape.
        lipschitz: L.
        leak: Slope for negative arguments if the link is :math:`\max(u, 0) + \alpha \min(u, 0)`, else
            None.
    """

    name: str
    function: LinkFunction
    lipschitz: float
    leak: float | None = None

    def __call__(self, u: Array) -> Array:
        """Return the link's values."""
        values = np.asarray(self.function(u), dtype=np.float64)
        if values.shape != u.shape:
            raise ValueError(
                f"the link must keep shapes; given {u.shape} it returned {values.shape}: vectorise it."
            )
        return values

    def is_steeper_than_declared(self, u: Array) -> bool:
        """Whether the link, on these points, falls or rises faster than its constant allows."""
        points = np.unique(u)
        run = np.diff(points)
        values = self(points)
        rise = np.diff(values)
        # Points and values are themselves off by a rounding of their size (an answer near 0.7 for
        # points that are 1e-19 apart): a few units in the last place of the larger of the two.
        size = max(float(np.abs(points).max(initial=0)), float(np.abs(values).max(initial=0)))
        slack = _SLOPE_ROUNDING * (np.abs(rise) + run) + _LAST_PLACES * np.finfo(float).eps * size
        return bool(np.any(rise < -slack) or np.any(rise > self.lipschitz * run + slack))

    def network(self, weights: Array, intercept: float) -> ReluNetwork:
        """Return the gate as a network.

        Raises:
            AttributeError: If the link is not piecewise linear.
        """
        if self.leak is None:
            raise AttributeError(
                f"a gate with link {self.name!r} is not piecewise linear, so it is no ReLU network; "
                "relu, leaky_relu and identity are."
            )
        row = weights[None]
        if self.leak == 1:
            return ReluNetwork.from_layers([(row, [intercept])])
        if self.leak == 0:
            return ReluNetwork.from_layers([(row, [intercept]), ([[1.0]], [0.0])])
        both = [(np.vstack([row, -row]), [intercept, -intercept]), ([[1.0, -self.leak]], [0.0])]
        return ReluNetwork.from_layers(both)


def leaky_relu(leak: float) -> Link:
    r"""Return the link :math:`\max(u, 0) + \alpha \min(u, 0)`.

    Example:
        >>> leaky_relu(0.5)(np.array([-2.0, 3.0]))
        array([-1.,  3.])
    """
    a = positive("leak", leak, zero=True)
    return Link("leaky_relu", lambda u: np.where(u > 0, u, a * u), max(1.0, a), a)


_LINKS = {
    "identity": Link("identity", lambda u: u, 1.0, 1.0),
    "relu": Link("relu", lambda u: np.maximum(u, 0.0), 1.0, 0.0),
    "sigmoid": Link("sigmoid", expit, 0.25),
    "tanh": Link("tanh", np.tanh, 1.0),
    "softplus": Link("softplus", lambda u: np.logaddexp(u, 0.0), 1.0),
}


def as_link(link: str | LinkFunction, *, leak: float = 0.1, lipschitz: float | None = None) -> Link:
    """Return a link by name, or a callable with its constant.

    Args:
        link: ``"relu"``, ``"leaky_relu"``, ``"identity"``, ``"sigmoid"``, ``"tanh"``, ``"softplus"``, or
            a non-decreasing function of arrays.
        leak: Slope of ``"leaky_relu"`` for negative arguments.
        lipschitz: The Lipschitz constant; needed for a callable, 1 if not given.

    Returns:
        The link.

    Raises:
        ValueError: If the name is unknown or the constant is not positive.

    Example:
        >>> as_link("sigmoid").lipschitz
        0.25
    """
    if callable(link):
        return Link("callable", link, 1.0 if lipschitz is None else positive("lipschitz", lipschitz))
    if link == "leaky_relu":
        return leaky_relu(leak)
    if link not in _LINKS:
        known = ", ".join(sorted([*_LINKS, "leaky_relu"]))
        raise ValueError(f"link must be a callable or one of {known}; got {link!r}.")
    return _LINKS[link]
