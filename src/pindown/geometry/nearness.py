r"""How near to zero counts as zero: the one place where that is decided, and why.

Cells are split by the signs of units at vertices, and float64 cannot tell the sign of a number below
its own rounding error. Two answers are in use.

**Fast.** Unit i of layer l is a sum :math:`\sum_j W_{ij} a_j + b_i`; rounding disturbs it by a few
units in the last place of its *terms*, not of its value. Its scale is therefore the largest
:math:`\sum_j |W_{ij}| a_j + |b_i|` over points of the box, and values below
``RESOLUTION`` :math:`= 2^{-40}` times that scale are taken for zero. That leaves a factor of some
thousand above the rounding of one evaluation (:math:`2^{-53}` each for some hundred terms), because
vertices carry errors of their own. A fold that comes this near to a vertex is taken to pass
through it: cells thinner than about :math:`10^{-12}` of the scale are not seen. Where the signs so
found fit no hyperplane (a short edge within the tolerance of one that cuts the faces at that edge),
the cell goes to exact rational arithmetic as below.

**Certified.** Every vertex and every affine map carries a proved error bound
(``compiled/vertex_errors.py``, ``compiled/layer_maps.py``). A sign is used only if the value exceeds its
bound, or if the value is proved to be exactly zero (``compiled/zero_proofs.py``): folds through corners,
duplicated units and zero biases are such ties. A cell with a sign that neither decides goes to exact
rational arithmetic (``exact/``).
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.network import ReluNetwork

RESOLUTION = 2.0**-40

# Two computed vertices, or affine maps, that differ by less than this share of their scale are one:
# they come from different cells, each with its own rounding, and true differences are larger.
SAME = 2.0**-30

# As many units in the last place of a coordinate tell no two points apart.
_PLACES = 64 * 2.0**-52

ASLEEP = 2.0**-8

_PROBES = 64

# Values up to here can be added and subtracted a few million times without overflow.
_MAX_VALUE = 2.0**1000

# Among the smallest numbers of all every product is off by half of the spacing.
_FEW_QUANTA = 2.0**-1066


def relative(points: Array, box: Box) -> Array:
    """Return points (n, d) in coordinates that run from 0 to 1 over the box."""
    return (points / 2 - box.lower / 2) / _half(box)


def same_place(box: Box) -> float:
    """Return how near, as a share of the sides, two computed points of a box may be one.

    Never less than the rounding of their coordinates, which is large in a small box far from 0.
    """
    reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
    with np.errstate(over="ignore"):
        return float(np.max(_PLACES * reach / _half(box), initial=SAME))


def _half(box: Box) -> Array:
    half = box.upper / 2 - box.lower / 2  # halves first: the difference may overflow
    return np.where(half > 0, half, 1.0)  # halves of denormals vanish


def layer_scales(net: ReluNetwork, box: Box, seed: int = 0) -> list[Array]:
    r"""Return for every layer, output last, the largest :math:`\sum_j |W_{ij}| a_j + |b_i|` on the box.

    Seen at both ends of its diagonal, its centre and some random points: a scale, not a bound. Units
    that sleep at all these points may be on elsewhere, so a unit inherits at least ``ASLEEP`` of what
    its inputs could bring: otherwise rounding errors would stand against a scale of zero.
    """
    rng = np.random.default_rng(seed)
    a = np.vstack([box.lower, box.upper, box.center, box.sample(_PROBES, rng)])
    before = np.max(np.abs(a), axis=0)
    scales = []
    with np.errstate(over="ignore", invalid="ignore"):
        for weight, bias in net.layers:
            sizes = abs(weight)
            seen = np.max(np.abs(a) @ sizes.T + np.abs(bias), axis=0)
            scales.append(np.maximum(seen, ASLEEP * (sizes @ before)))
            a = np.maximum(a @ weight.T + bias, 0.0)
            before = scales[-1]
    return scales


def unit_scales(net: ReluNetwork, box: Box, seed: int = 0) -> Array:
    """Return the scales of all ReLUs, layers one after the other.

    >>> net = ReluNetwork.from_layers([([[3.0, -4.0]], [1]), ([[1.0]], [0])])
    >>> unit_scales(net, Box([-1, -1], [1, 1]))
    array([8.])
    """
    return np.concatenate([np.empty(0), *layer_scales(net, box, seed)[:-1]])


def zero_bounds(net: ReluNetwork, box: Box) -> Array:
    """Return for every ReLU the size below which its value counts as zero (fast mode)."""
    return np.maximum(RESOLUTION * unit_scales(net, box), _FEW_QUANTA)


def leaves_float64(net: ReluNetwork, box: Box) -> bool:
    """Return whether a unit, its terms or its slopes on a box may be too large or too small for float64.

    Too small is a unit of which all that is not zero is tiny; a tiny term beside others is not.

    >>> net = ReluNetwork.from_layers([([[1e300, 1e300]], [0]), ([[1.0]], [0])])
    >>> leaves_float64(net, Box([0, 0], [1, 1])), leaves_float64(net, Box([0, 0], [1e9, 1]))
    (False, True)
    >>> net = ReluNetwork.from_layers([([[1e-200, 1e-200]], [0]), ([[1e-200]], [0]), ([[1.0]], [0])])
    >>> leaves_float64(net, Box([0, 0], [1, 1]))
    True
    >>> leaves_float64(ReluNetwork.from_layers([([[1.0, 1.0]], [0])]), Box([0, 0], [1e-310, 1e-310]))
    True
    """
    # At least 1, so that slopes, whose terms do not have the inputs in them, are bounded as well.
    size = np.maximum(1.0, np.maximum(np.abs(box.lower), np.abs(box.upper)))
    slope = np.minimum(1.0, box.radius)  # by how much at least what varies does so on a narrow box
    varies = slope > 0.0
    largest, smallest = size.max(), float(np.min(slope, initial=1.0, where=varies))
    with np.errstate(over="ignore", invalid="ignore"):
        for weight, bias in net.layers:
            size, slope = abs(weight) @ size + np.abs(bias), abs(weight) @ slope
            varies = (weight != 0.0) @ varies
            largest = np.maximum(largest, size.max(initial=0.0))
            smallest = min(smallest, float(np.min(slope, initial=1.0, where=varies)))
    return not (largest < _MAX_VALUE and smallest > 1.0 / _MAX_VALUE)
