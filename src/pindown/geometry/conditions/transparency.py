r"""Transparency: at every input, every hidden layer has a unit that is not negative.

The margin of layer l on a box B is

.. math:: \tau_l = \min_{x \in B} \max_i h_i^{1:l}(x),

and the network is transparent on B if all margins are at least zero. Where a whole layer is negative the
output is locally constant: no gradient, nothing to explain, and folds of earlier layers are invisible.

Phuong 2021, section 2.2 and Definition A.12; equation (2.7) prints :math:`h_i^{l:l}` for
:math:`h_i^{1:l}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.evidence import Bracket
from pindown.geometry.conditions._margins import by_cells, by_descent, by_intervals, by_program
from pindown.geometry.tuning import MAX_MARGIN_INPUTS_BY_CELLS
from pindown.network import ReluNetwork
from pindown.text import rounded_down, rounded_up
from pindown.validation import integer

if TYPE_CHECKING:
    from pindown.geometry.complex.polyhedral import PolyhedralComplex


@dataclass(frozen=True, eq=False)
class LayerMargin:
    """The enclosure ``lower <= tau <= upper`` of one layer's margin.

    Attributes:
        layer: Number of the ReLU layer, from 1.
        lower: Lower bound: proved by intervals; by cells and programs as float64 and the solver find it,
            less 1e-8 of the numbers in it or more.
        upper: Largest preactivation of the layer at ``witness``, rounded up.
        witness: The input (d,) at which the layer is lowest, as far as known.
    """

    layer: int
    lower: float
    upper: float
    witness: Array

    @property
    def sign(self) -> bool | None:
        """Whether the margin is at least zero: False is proved, True is as good as ``lower``."""
        if self.upper < 0:
            return False
        return True if self.lower >= 0 else None

    def __str__(self) -> str:
        lower, upper = rounded_down(self.lower, 6), rounded_up(self.upper, 6)
        return f"layer {self.layer}: {lower} <= tau <= {upper}"


@dataclass(frozen=True, eq=False)
class Transparency:
    """Whether at every input of a box every hidden layer has a non-negative unit.

    Attributes:
        box: The inputs.
        margins: One enclosure for each hidden layer.
    """

    box: Box
    margins: tuple[LayerMargin, ...]

    @property
    def transparent(self) -> bool | None:
        """True (as far as the lower bounds go), False (``witness`` proves it), or None: not decided."""
        signs = [margin.sign for margin in self.margins]
        if False in signs:
            return False
        return None if None in signs else True

    @property
    def lower(self) -> Array:
        """Lower bounds of the margins, one for each hidden layer."""
        return np.array([margin.lower for margin in self.margins])

    @property
    def upper(self) -> Array:
        """Upper bounds of the margins, one for each hidden layer."""
        return np.array([margin.upper for margin in self.margins])

    @property
    def witness(self) -> Array | None:
        """An input at which a whole layer is off, the first such layer's; None if none is known."""
        return next((margin.witness for margin in self.margins if margin.sign is False), None)

    def __str__(self) -> str:
        verdict = {True: "transparent", False: "not transparent", None: "transparency not decided"}
        margins = "; ".join(map(str, self.margins)) or "no hidden layer"
        return f"{verdict[self.transparent]} ({margins})"

    __repr__ = __str__


def check_transparency(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    budget: float = 10.0,
    samples: int = 2048,
    seed: int = 0,
) -> Transparency:
    r"""Enclose the margin :math:`\tau_l = \min_x \max_i h_i^{1:l}(x)` of every hidden layer.

    Upper bounds come from random inputs and descent, lower bounds from interval arithmetic, then from
    the cells of the network (one to three inputs) or a mixed-integer program. Layers whose sign is open
    come first; the rest of the time tightens the others.

    Args:
        net: The network.
        box: The inputs, a Box or a pair (lower, upper).
        budget: Seconds for all layers together. With 0, only intervals and samples speak.
        samples: Number of random inputs.
        seed: Chooses the random inputs.

    Returns:
        The enclosures and the verdict. If time runs out they are wide, never wrong.

    Raises:
        ValueError: If the box does not fit the network, or budget or samples are negative.

    >>> absolute = ReluNetwork.from_layers([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [0])])
    >>> check_transparency(absolute, ([-2], [2]))  # max(x + 1/2, -x + 1/2) is least at 0
    transparent (layer 1: 0.499999 <= tau <= 0.500001)
    >>> check_transparency(ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])]), (-2, 2)).witness
    array([-2.])

    Phuong 2021, Definition A.12.
    """
    domain = as_box(box, net.in_features)
    integer("samples", samples, least=0)
    deadline = Deadline.of(budget)
    rng = np.random.default_rng(seed)
    parts = [net[:layer] for layer in range(1, net.depth)]
    points = domain.sample(max(samples, 1), rng)
    known = [by_intervals(g, domain) & by_descent(g, domain, points, deadline) for g in parts]
    order = sorted(range(len(parts)), key=lambda i: (_decided(known[i]), i))
    for n, i in enumerate(order):
        if deadline.passed:
            break
        known[i] = known[i] & _search(parts[i], domain, deadline.share(1 / (len(order) - n)))
    # A minimum that an interval puts above what a point shows is rounding.
    return Transparency(
        domain,
        tuple(_margin(layer, bracket) for layer, bracket in enumerate(known, 1)),
    )


def _margin(layer: int, bracket: Bracket) -> LayerMargin:
    assert bracket.witness is not None  # every search begins at a point
    return LayerMargin(layer, min(bracket.lower, bracket.upper), bracket.upper, bracket.witness)


def _decided(bracket: Bracket) -> bool:
    return bracket.lower >= 0 or bracket.upper < 0


def _search(g: ReluNetwork, box: Box, deadline: Deadline) -> Bracket:
    """Bound one margin by the method that suits the number of inputs."""
    if g.depth > 1 and (g.in_features > MAX_MARGIN_INPUTS_BY_CELLS or (box.lower == box.upper).any()):
        return by_program(g, box, deadline)
    found = by_cells(g, box, deadline.share(0.5))
    done = found.lower > -np.inf or deadline.passed
    return found if done else found & by_program(g, box, deadline)


@dataclass(frozen=True, eq=False)
class DeadZones:
    """The cells of a complex on which some hidden layer is entirely off.

    Attributes:
        complex: The complex.
        layers: For every cell the first layer that is off, from 1; 0 where none is. Read-only.
    """

    complex: PolyhedralComplex
    layers: NDArray[np.int64]

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Indices of the dead cells."""
        return np.flatnonzero(self.layers)

    @cached_property
    def volume(self) -> float:
        """Their total volume (length, area)."""
        return float(self.complex.volumes[self.cells].sum())

    @property
    def share(self) -> float:
        """Their share of all cells' volume."""
        return self.volume / float(self.complex.volumes.sum())

    def __str__(self) -> str:
        part = "" if self.complex.complete else " of the cells found so far"
        return f"{len(self.cells)} dead cells, {100 * self.share:.3g}% of the volume{part}"

    __repr__ = __str__


def dead_zones(cells: PolyhedralComplex) -> DeadZones:
    """Find where an entire hidden layer is off, so that the output is locally constant.

    >>> from pindown.geometry.complex.polyhedral import polyhedral_complex
    >>> ramp = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> dead_zones(polyhedral_complex(ramp, Box([-3], [1])))
    1 dead cells, 75% of the volume
    """
    layers = np.zeros(cells.n_regions, dtype=np.int64)
    for layer, mask in reversed(list(enumerate(cells.net.by_layer(cells.patterns), 1))):
        layers[~mask.any(axis=1)] = layer
    layers.flags.writeable = False
    return DeadZones(cells, layers)
