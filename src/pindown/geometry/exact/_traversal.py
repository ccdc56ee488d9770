"""Depth-first traversal of all cells of a network, in exact integers, one cell at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf

import numpy as np

from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.geometry.exact.integer_network import IntegerNetwork, Integers, integer_network
from pindown.geometry.exact.polytope import Cell, Vertex, bits_of, corners, cut, signs, value_at
from pindown.network import ReluNetwork


class Walk:
    """One depth-first walk through the cells of a network on a box; memory grows with depth only.

    A layer's units are affine on each cell of the layers before. A unit cuts a cell if it is
    positive at one vertex and negative at another; both children are then looked at again.

    Attributes:
        growth: Cells found after each hidden layer.
        complete: Whether nothing was left out, once the iteration has ended.
    """

    def __init__(
        self,
        net: ReluNetwork,
        box: Box,
        states: Sequence[int] | None = None,
        *,
        max_cells: float = inf,
        deadline: Deadline = NEVER,
    ) -> None:
        self.net = integer_network(net)
        self.first = self.net.first_units
        self.growth = [0] * len(self.net.widths)
        self.complete = True
        self._max_cells, self._deadline = max_cells, deadline
        self._must_be_on = _bits(states, 1)
        self._must_be_off = _bits(states, -1)
        self._root = corners(box, self.first[-1])
        self._unit_bits = [[1 << j for j in range(a, b)] for a, b in pairwise(self.first)]
        self._layer_bits = [sum(bits) for bits in self._unit_bits]
        box_sides = ((1 << 2 * box.dim) - 1) << self.first[-1]
        self._known = list(accumulate(self._layer_bits, initial=box_sides))
        self._forms = _Forms(self.net, box.dim)

    def count(self) -> int:
        """Return the number of cells; the last cut of each cell need not be made."""
        last = len(self.net.widths) - 1
        if last < 0:
            return sum(1 for _ in self.cells())
        free = self._must_be_on | self._must_be_off
        for _ in self.cells(skip=~free & self._layer_bits[last]):
            pass
        return self.growth[last]

    def cells(self, skip: int = 0) -> Iterator[Cell]:
        """Yield the full-dimensional cells.

        Args:
            skip: Units of the last layer whose last cut is counted but not made.
        """
        last = len(self.net.widths) - 1
        if last < 0:
            yield self._root
            return
        stack = [(0, self._enter(0, self._root))]
        while stack:
            if self.growth[last] >= self._max_cells or self._deadline.passed:
                self.complete = False
                return
            layer, cell = stack.pop()
            positive, negative = signs(cell)
            if self._contradicts(positive, negative, self._known[layer + 1]):
                continue
            cutting = positive & negative & self._layer_bits[layer]
            if cutting:
                if layer == last and cutting & skip == cutting and cutting & (cutting - 1) == 0:
                    self.growth[layer] += 2
                else:
                    stack.extend((layer, part) for part in self._split(layer, cell, cutting))
                continue
            self.growth[layer] += 1
            if layer == last:
                yield cell
            else:
                self._forms.descend(layer, ~negative >> self.first[layer])
                stack.append((layer + 1, self._enter(layer + 1, cell)))

    def _contradicts(self, positive: int, negative: int, known: int) -> bool:
        """Say whether a unit that must be on is nowhere positive, or one to be off never negative.

        A unit that vanishes on the whole cell satisfies both demands.
        """
        wrong = self._must_be_on & negative & ~positive | self._must_be_off & positive & ~negative
        return wrong & known != 0

    def _enter(self, layer: int, cell: Cell) -> Cell:
        """Add the signs of a layer's units to the vertices that lack them."""
        for vertex in cell:
            if vertex.layers <= layer:
                vertex.layers = layer + 1
                vertex.see(self._unit_bits[layer], self._forms.values(layer, vertex))
        return cell

    def _split(self, layer: int, cell: Cell, cutting: int) -> Iterator[Cell]:
        """Cut a cell by one of the units that cut it; yield the parts that are wanted."""
        wanted = cutting & (self._must_be_on | self._must_be_off)
        bit = (wanted or cutting) & -(wanted or cutting)
        rows, start = self._forms.rows[layer], self.first[layer]
        others = bits_of(cutting ^ bit)
        other_rows = [rows[other.bit_length() - 1 - start] for other in others]

        def finish(vertex: Vertex) -> None:
            vertex.see(others, [value_at(row, vertex) for row in other_rows])

        known = self._known[layer + 1] & ~cutting
        plus, minus = cut(cell, bit, rows[bit.bit_length() - 1 - start], known, layer + 1, finish)
        if not bit & self._must_be_on:
            yield minus
        if not bit & self._must_be_off:
            yield plus


class _Forms:
    """The affine forms of every layer's units on the cell that the walk is in."""

    def __init__(self, net: IntegerNetwork, dim: int) -> None:
        self._net = net
        n_layers = len(net.widths)
        identity = np.vstack([np.eye(dim, dtype=int), np.zeros((1, dim), int)]).T.astype(object)
        self._forms: list[Integers] = [None] * n_layers
        self._pattern: list[int | None] = [None] * n_layers
        self.rows: list[list[list[int]]] = [[]] * n_layers
        if n_layers:
            self._set(0, self._after(0, identity, list(range(dim))))

    def values(self, layer: int, vertex: Vertex) -> list[int]:
        """Return all values of a layer's units at a vertex of the current cell, positively scaled."""
        values: Integers = self._forms[layer].dot(np.array(vertex.point, dtype=object))
        return values.tolist()

    def descend(self, layer: int, on: int) -> None:
        """Compute the forms of layer + 1 on a cell where the given units of this layer are on."""
        width = self._net.widths[layer]
        on &= (1 << width) - 1
        before = self._pattern[layer + 1]
        changed = (1 << width) - 1 if before is None else before ^ on
        if before is None or 2 * changed.bit_count() > width:
            forms = self._after(layer + 1, self._forms[layer], [j for j in range(width) if on >> j & 1])
        else:
            # The cell before was a neighbour of sorts: few units changed, one outer product each.
            forms = self._forms[layer + 1]
            for j in (j for j in range(width) if changed >> j & 1):
                column = self._net.weights[layer + 1][:, j]
                step = np.multiply.outer(column, self._forms[layer][j])
                forms = forms + step if on >> j & 1 else forms - step
        self._set(layer + 1, forms)
        self._pattern[layer + 1] = on

    def _after(self, layer: int, inputs: Integers, active: list[int]) -> Integers:
        forms = self._net.weights[layer][:, active].dot(inputs[active])
        forms[:, -1] += self._net.biases[layer]
        return forms

    def _set(self, layer: int, forms: Integers) -> None:
        self._forms[layer], self.rows[layer] = forms, forms.tolist()
        if layer + 1 < len(self._forms):
            self._pattern[layer + 1] = None  # was computed from other forms


def _bits(states: Sequence[int] | None, state: int) -> int:
    return sum(1 << j for j, s in enumerate(states) if s == state) if states is not None else 0
