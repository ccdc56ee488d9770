r"""Generality: is a network free of the coincidences that the theory of folds excludes?

A network is *general* if

- G1: no hidden unit has a local optimum of its preactivation with value exactly zero;
- G2: every product :math:`I_l W_l I_{l-1} \cdots I_k W_k` has the largest rank it can have;
- G3: no two distinct (unit, activation pattern below it) have proportional local maps :math:`[w, b]`.

All networks except a closed set of measure zero are general; networks without biases, pruned and
quantised ones usually are not.

Phuong 2021, section 2.2 and Definition A.11.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_, or_

import numpy as np
from numpy.typing import ArrayLike

from pindown.box import Box, as_box
from pindown.deadline import NEVER, Deadline
from pindown.geometry.conditions._full_rank import (
    Mask,
    rank_violations,
    seen_patterns,
    seen_rank_violations,
)
from pindown.geometry.conditions._generality_report import GeneralityReport, Violation
from pindown.geometry.conditions._parallel_maps import parallel_violations, seen_parallel_violations
from pindown.geometry.exact.complex import ExactComplex, exact_complex
from pindown.geometry.exact.polytope import Vertex, signs
from pindown.geometry.tuning import (
    MAX_OPTIMA_CELLS,
    MAX_OPTIMA_INPUTS,
    MAX_UNITS_ALL_MAPS,
    MAX_UNITS_ALL_RANKS,
    MAX_WEIGHT_ENTRIES,
)
from pindown.network import ReluNetwork
from pindown.validation import integer

__all__ = ["GeneralityReport", "Violation", "check_generality"]


def check_generality(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    *,
    budget: float = 30.0,
    samples: int = 1000,
    seed: int = 0,
) -> GeneralityReport:
    """Check the three conditions of generality, exactly where the network is small.

    G2 is checked on all patterns up to 16 ReLUs, G3 up to 12, G1 on all cells of the box up to three
    inputs. Beyond that, the patterns of random inputs speak: what they show is a violation, what they
    do not show is no proof. Zero weights after the first layer and proportional units are always found,
    but for layers of more than 2**25 entries, which are not looked at. All arithmetic is exact: residues
    modulo a prime, then integers.

    Args:
        net: The network.
        box: The domain. Without one, G1 stays untested: it is a statement about a domain.
        budget: Seconds, roughly; with less time fewer cells and seen patterns are looked at. Networks
            small enough for all patterns take a second or two in any case.
        samples: Number of random inputs for networks that are too large.
        seed: Chooses the random inputs.

    Returns:
        The verdict, how far each condition was checked, and the violations in words.

    Raises:
        ValueError: If the box does not fit the network, or ``budget`` or ``samples`` is negative.

    Example:
        Without a bias, the second layer repeats the first wherever a single unit of it is on:

        >>> net = ReluNetwork.from_layers([([[1.0, 2.0], [3.0, 1.0]], [1, 1]), ([[2.0, 1.0]], [0])])
        >>> check_generality(net, (-1, 1))
        not general (G1: all cells, G2: all patterns, G3: all patterns)
          G3, layer 2, unit 0: with these units on: layer 1: 0, it is 2 times unit 0 of layer 1
          G3, layer 2, unit 0: with these units on: layer 1: 1, it is 1 times unit 1 of layer 1

    Phuong 2021, section 2.2 and Lemmas A.10 to A.12; condition 3 of section 2.2 read as in Lemma A.11.
    """
    integer("samples", samples, least=0)
    deadline = Deadline.of(budget)
    domain = None if box is None else as_box(box, net.in_features)
    rng = np.random.default_rng(seed)
    small = net.size <= min(MAX_UNITS_ALL_RANKS, MAX_UNITS_ALL_MAPS)
    seen = None if small else seen_patterns(net, domain, samples, rng)
    checked = {}
    violations, checked["G1"] = _optima(net, domain, deadline.share(2 / 3), samples, rng)
    if max(W.shape[0] * W.shape[1] for W, _ in net.layers) > MAX_WEIGHT_ENTRIES:
        checked |= {"G2": "untested", "G3": "untested"}
        return GeneralityReport(not violations, False, tuple(violations), checked)
    if seen is None or net.size <= MAX_UNITS_ALL_RANKS:
        violations, checked["G2"] = violations + rank_violations(net), "all patterns"
    else:
        violations, checked["G2"] = violations + seen_rank_violations(net, seen, deadline), "sampled"
    if seen is None:
        violations, checked["G3"] = violations + parallel_violations(net), "all patterns"
    else:
        violations, checked["G3"] = violations + seen_parallel_violations(net, seen, rng), "sampled"
    exhaustive = all(extent.startswith("all") for extent in checked.values())
    return GeneralityReport(not violations, exhaustive, tuple(violations), checked)


def _optima(
    net: ReluNetwork, box: Box | None, deadline: Deadline, samples: int, rng: np.random.Generator
) -> tuple[list[Violation], str]:
    """Check G1 on all cells if they can be listed, else where random inputs have a whole layer off."""
    if box is None:
        return [], "untested"
    found, complete = optimum_violations(net, box, deadline)
    if complete:
        return found, "all cells"
    if not samples:
        return found, "sampled" if found else "untested"
    values = net.by_layer(net.preactivations(box.sample(samples, rng)))
    for layer, (before, (_, bias)) in enumerate(zip(values, net.layers[1:-1], strict=False), 2):
        units = np.flatnonzero(bias == 0)
        if len(units) and (before < 0).all(axis=1).any():
            detail = f"constant 0 where layer {layer - 1} is off"
            found.append(Violation("G1", layer, tuple(units.tolist()), detail))
    return found, "sampled"


def optimum_violations(
    net: ReluNetwork, box: Box, deadline: Deadline = NEVER
) -> tuple[list[Violation], bool]:
    """Look for zero optima inside the box, on all cells.

    Args:
        net: The network.
        box: The domain.
        deadline: When to stop.

    Returns:
        One violation for each unit concerned, and whether all cells could be searched.

    >>> bump = ReluNetwork.from_layers(
    ...     [([[1.0], [-1.0]], [0, 0]), ([[-1.0, -1.0]], [0]), ([[1.0]], [0])]
    ... )
    >>> print(*optimum_violations(bump, Box([-1], [1]))[0])  # -|x| has its maximum 0 at 0
    G1, layer 2, unit 0: a local maximum of value 0 at (0)
    """
    if net.in_features > MAX_OPTIMA_INPUTS or (box.lower == box.upper).any():
        return [], False
    cells = exact_complex(net, box, max_cells=MAX_OPTIMA_CELLS, budget=deadline.left / 2)
    if not cells.complete:
        return [], False
    found: dict[int, Violation] = {}
    positive, negative = _cell_signs(cells)
    checked: set[tuple[int, int, int]] = set()
    for unit, face in _zero_faces(cells):
        above = reduce(or_, (vertex.positive for vertex in face))
        below = reduce(or_, (vertex.negative for vertex in face))
        if unit in found or (unit, above, below) in checked:
            continue
        if deadline.passed:
            return list(found.values()), False
        checked.add((unit, above, below))
        around = _cells_around(positive, negative, _bits(above, net.size), _bits(below, net.size))
        kinds = bool(positive[around, unit].any()), bool(negative[around, unit].any())
        if not all(kinds):
            found[unit] = _violation(net, unit, face, kinds)
    return list(found.values()), True


def _zero_faces(cells: ExactComplex) -> Iterator[tuple[int, list[Vertex]]]:
    """Yield units and the corners of faces, inside the box, where they vanish without changing sign."""
    size = cells.net.size
    for cell in cells.cells:
        positive, negative = signs(cell)
        for unit in range(size):
            bit = 1 << unit
            face = [vertex for vertex in cell if not (vertex.positive | vertex.negative) & bit]
            if face and not positive & negative & bit and not _on_side(face, size):
                yield unit, face


def _cells_around(positive: Mask, negative: Mask, above: Mask, below: Mask) -> Mask:
    """Return which cells hold a point where units ``above`` are positive and ``below`` negative."""
    vanishing = ~(positive | negative)
    clash = (positive & below) | (negative & above) | (vanishing & (above | below))
    return np.logical_not(np.any(clash, axis=1))


def _cell_signs(cells: ExactComplex) -> tuple[Mask, Mask]:
    """Return which units are positive, and which negative, inside each cell."""
    size = cells.net.size
    pairs = [signs(cell) for cell in cells.cells]
    return np.array([_bits(p, size) for p, _ in pairs]), np.array([_bits(n, size) for _, n in pairs])


def _on_side(face: list[Vertex], size: int) -> bool:
    """Return whether a face lies on a side of the box: optima there are not inside."""
    return reduce(and_, (vertex.tight for vertex in face)) >> size != 0


def _violation(net: ReluNetwork, unit: int, face: list[Vertex], kinds: tuple[bool, bool]) -> Violation:
    starts = np.cumsum([0, *net.hidden_widths])
    layer = int(np.searchsorted(starts, unit, side="right"))
    kind = {(True, False): "minimum", (False, True): "maximum"}.get(kinds, "plateau")
    centre = [float(sum(x) / len(face)) for x in zip(*(v.fractions for v in face), strict=True)]
    where = ", ".join(f"{x:.6g}" for x in centre)
    detail = f"a local {kind} of value 0 at ({where})"
    return Violation("G1", layer, (unit - int(starts[layer - 1]),), detail)


def _bits(mask: int, size: int) -> Mask:
    return np.array([mask >> i & 1 for i in range(size)], dtype=bool)
