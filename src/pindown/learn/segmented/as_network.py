"""A fitted function as a network."""

from __future__ import annotations

import numpy as np

from pindown.learn.segmented.problem import Function
from pindown.network import ReluNetwork


def as_network(function: Function, column: int = 0, n_features: int = 1) -> ReluNetwork:
    r"""Write a function of one variable with p pieces as a network with at most p units.

    One unit faces left from the first breakpoint, the others face right:

    .. math:: f(x) = f(t_1) - a_0 \rho(t_1 - x) + a_1 \rho(x - t_1)
        + \sum_{j \ge 2} (a_j - a_{j-1}) \rho(x - t_j) .

    A straight line needs no unit at all.

    Mukherjee 2020, Theorem 2.2.2, whose proof uses as many.
    """
    t, v, a = function.knots, function.values, function.slopes
    choose = np.eye(n_features)[[column]]
    if len(a) == 1:
        return ReluNetwork.from_layers([(a[0] * choose, [v[0] - a[0] * t[0]])])
    hidden = np.r_[-1.0, np.ones(len(t))][:, None] * choose, np.r_[t[0], -t]
    return ReluNetwork.from_layers([hidden, (np.r_[-a[0], a[1], np.diff(a[1:])][None], [v[0]])])
