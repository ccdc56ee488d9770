r"""How far a network can move when its weights are off by known amounts.

Let the layers of f* lie within :math:`E_l, e_l` of those of f, entry by entry, and let :math:`m_l`
bound the inputs of layer l of f. The two then differ at layer l by at most

.. math:: \delta_{l+1} = |W_l|\,\delta_l + E_l\,(m_l + \delta_l) + e_l, \qquad \delta_0 = 0 ,

because ReLU moves no two numbers apart. On a box :math:`m_l` are interval bounds; without one all
sizes are relative to :math:`1 + \|x\|_2`. The bound is crude for large changes, and small for
rounding.

Where that is too crude, the sharper methods of :mod:`pindown.equivalence.changes` are asked.

Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix
from pindown.box import Box
from pindown.equivalence.changes import Change, gap_of_changes
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import SMALLEST, gamma

# A sharper bound is below the crude one by less than this factor; where that is not enough, no time is
# spent on it.
_MOST_GAINED = 1e6

Errors = Mapping[int, tuple[Matrix | float, Array | float]]


def error_bound(net: ReluNetwork, errors: Errors, box: Box | None) -> float:
    """Bound the gap between a network and all whose layers differ from it by at most the errors.

    Args:
        net: The network.
        errors: For layers (from 0) bounds on the change of weights and of biases; 0.0 for none.
        box: The inputs; None for all, the gap then relative to ``1 + ||x||``.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[3.0]], [0])])
    >>> round(error_bound(net, {0: (0.0, np.array([0.1]))}, Box([-1], [1])), 9)
    0.3
    """
    sizes = _sizes(net, box)
    delta = np.zeros(net.in_features)
    for i, layer in enumerate(net.layers):
        new = _times(layer.weight, delta) if delta.any() else np.zeros(layer.out_features)
        if i in errors:
            of_weight, of_bias = errors[i]
            with np.errstate(over="ignore", invalid="ignore"):
                if np.ndim(of_weight) == 2 or sp.issparse(of_weight):
                    new = new + _changed(of_weight, sizes[i], delta, relative=box is None and i == 0)
                new = (new + of_bias) * (1.0 + gamma(4))
        delta = np.where(np.isnan(new), np.inf, new)
    return float(delta.max())


def gap_bound(net: ReluNetwork, errors: Errors, box: Box | None, enough: float, budget: float) -> float:
    """Return :func:`error_bound`, or a sharper bound if that is above what would be enough.

    Args:
        net: The network.
        errors: As for :func:`error_bound`.
        box: The inputs; None for all.
        enough: No sharper bound is sought below this, or if it is far out of reach.
        budget: Seconds for the sharper bound.
    """
    crude = error_bound(net, errors, box)
    if crude <= enough or budget <= 0.0 or not crude <= _MOST_GAINED * enough:
        return crude
    changes = {}
    for i, (of_weight, of_bias) in errors.items():
        shape = net.layers[i].weight.shape
        nothing = sp.csr_array(shape) if sp.issparse(of_weight) else np.zeros(shape)
        changes[i] = Change(nothing, np.zeros(shape[0]), of_weight, of_bias)
    with np.errstate(over="ignore", invalid="ignore"):
        sharper = gap_of_changes(net, changes, box=box, target=enough, budget=budget)
    return min(crude, sharper.value)


def _changed(of_weight: Matrix, size: Array, delta: Array, *, relative: bool) -> Array:
    if relative:  # a row times x is at most its length times that of x
        squares = of_weight * of_weight  # infinite where they leave float64: a bound all the same
        rows = np.asarray(squares.sum(axis=1)).reshape(-1)
        length = np.sqrt(rows) * (1.0 + gamma(of_weight.shape[1] + 8))
        # Squares may underflow; the largest entry times the root of the count cannot.
        tiny = length < np.sqrt(np.finfo(float).tiny) * 2.0**60
        return np.where(tiny, _times(of_weight, np.ones(of_weight.shape[1])), length)
    return _times(of_weight, (size + delta) * (1.0 + gamma(1)))


def _sizes(net: ReluNetwork, box: Box | None) -> list[Array]:
    """Bound the inputs of every layer."""
    if box is not None:
        hidden = [np.maximum(z.upper, 0.0) for z in interval_bounds(net, box)[:-1]]
        return [np.maximum(np.abs(box.lower), np.abs(box.upper)), *hidden]
    sizes = [np.ones(net.in_features)]
    for layer in net.layers[:-1]:
        with np.errstate(over="ignore"):
            total = _times(layer.weight, sizes[-1]) + np.abs(layer.bias)
            sizes.append(total * (1.0 + gamma(2)))
    return sizes


def _times(weight: Matrix, vector: Array) -> Array:
    """Return an upper bound on ``|W| v`` for ``v >= 0``."""
    n = weight.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.asarray(abs(weight) @ vector)
        return np.where(product == 0.0, product, product * (1.0 + 2.0 * gamma(n + 2))) + n * SMALLEST
