"""The exact complex against brute force, counts found by other tools, and truths seen by eye."""

from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from pindown.box import Box
from pindown.geometry.exact.complex import exact_cells_within, exact_complex, exact_count
from pindown.geometry.exact.integer_network import exact_signs
from pindown.geometry.exact.polytope import face_numbers
from pindown.network import ReluNetwork
from tests.geometry.oracles import (
    KINDS,
    brute_force_cells,
    cube,
    degenerate_network,
    random_network,
    reference_network,
    sampled_patterns,
    scaled_layers,
)

RANDOM_KINDS = [kind for kind in KINDS if kind != "handmade"]
SMALL = {1: (4, 3), 2: (3, 3), 3: (3, 2), 4: (3, 2)}


def patterns_of(found):
    return {tuple(bool(on) for on in row) for row in found.patterns}


def one_layer(W, b):
    return ReluNetwork.from_layers([(W, b), (np.ones((1, len(b))), [0])])


def check_tiles(found):
    """The cells tile the box: volumes, the Euler relation, distinct patterns, full dimension."""
    box = found.box
    sides = [Fraction(float(u)) - Fraction(float(v)) for u, v in zip(box.upper, box.lower, strict=True)]
    assert sum(found.volumes) == np.prod(sides)
    assert min(found.volumes) > 0
    assert sum((-1) ** k * n for k, n in enumerate(face_numbers(found.cells))) == 1
    assert len(patterns_of(found)) == found.n_regions


# ---------------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("widths", "seed", "count"),
    [
        ((2, 16, 16, 1), 0, 391),
        ((2, 16, 16, 1), 1, 278),
        ((2, 32, 32, 1), 0, 1254),
        ((3, 16, 16, 1), 0, 2543),
        ((2, 32, 32, 32, 32, 1), 0, 4462),
    ],
)
def test_counts_that_three_other_tools_agree_on(widths, seed, count):
    assert exact_count(reference_network(widths, seed), cube(widths[0])) == (count, True)


@pytest.mark.slow
@pytest.mark.parametrize(("widths", "count"), [((4, 16, 16, 1), 21182), ((5, 16, 16, 1), 95821)])
def test_counts_in_more_dimensions(widths, count):
    assert exact_count(reference_network(widths, 0), cube(widths[0])) == (count, True)


@pytest.mark.parametrize("block", range(10))
def test_three_hundred_small_networks_against_brute_force(block):
    for seed in range(30 * block, 30 * block + 30):
        rng, d = np.random.default_rng(seed), 1 + seed % 4
        kind = None if seed % 3 == 0 else RANDOM_KINDS[seed // 4 % len(RANDOM_KINDS)]
        net = (
            random_network(rng, d, SMALL[d])
            if kind is None
            else degenerate_network(kind, d, rng, SMALL[d])
        )
        found = exact_complex(net, cube(d))
        assert patterns_of(found) == brute_force_cells(net, cube(d), rng), (seed, kind)
        assert len(patterns_of(found)) == found.n_regions
        assert sum(found.volumes) == 2**d


@pytest.mark.parametrize("d", [1, 2, 3])
def test_hand_made_networks_against_brute_force(d):
    rng = np.random.default_rng(0)
    net = degenerate_network("handmade", d, rng)
    assert patterns_of(exact_complex(net, cube(d))) == brute_force_cells(net, cube(d), rng)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "widths"), [(2, (8, 8)), (3, (5, 4))])
def test_degenerate_networks(kind, d, widths):
    rng = np.random.default_rng(0)
    net = degenerate_network(kind, d, rng, widths)
    found = exact_complex(net, cube(d))
    check_tiles(found)
    assert exact_count(net, cube(d)) == (found.n_regions, True)
    sampled = sampled_patterns(net, cube(d), 20_000, rng)
    assert sampled <= patterns_of(found)
    missed = [
        v for v, row in zip(found.volumes, found.patterns, strict=True) if tuple(row) not in sampled
    ]
    assert all(volume < 0.01 for volume in missed)  # 20,000 points find every larger cell


def test_counts_seen_by_eye():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        through_origin = one_layer(rng.normal(size=(n, 2)), np.zeros(n))
        assert exact_complex(through_origin, cube(2)).n_regions == 2 * n
    assert exact_complex(one_layer([[1, 0], [1, 0], [-3, 0]], [0, 0, 0]), cube(2)).n_regions == 2
    assert exact_complex(one_layer(np.eye(4), np.zeros(4)), cube(4)).n_regions == 16
    # Folds that touch the box in a side, an edge or a corner cut nothing.
    assert exact_complex(one_layer([[1, 0, 0], [1, 1, 0], [1, 1, 1]], [1, 2, 3]), cube(3)).n_regions == 1
    # Six sectors between x = 0, y = 0 and x = y, each cut by the diamond; the output merges some.
    handmade = exact_complex(degenerate_network("handmade", 2, rng), cube(2))
    assert (handmade.n_regions, handmade.n_pieces) == (12, 8)
    # The 1-norm in three dimensions: eight orthants, each cut in two by the octahedron.
    norm = ReluNetwork.from_layers(
        [(np.vstack([np.eye(3), -np.eye(3)]), np.zeros(6)), (np.ones((1, 6)), [-1]), ([[1]], [0])]
    )
    found = exact_complex(norm, cube(3))
    assert found.n_regions == 16 and found.growth == (8, 16)
    assert sorted(set(found.volumes)) == [Fraction(1, 6), Fraction(5, 6)]
    assert found.n_pieces == 9  # inside the octahedron the output is 0


def test_one_tie_is_not_a_near_miss():
    # Three lines through one point; then one of them moved by the smallest step there is.
    W, tiny = np.array([[1.0, 0], [0, 1], [1, 1]]), np.nextafter(0, 1)
    assert exact_complex(one_layer(W, [0, 0, 0]), cube(2)).n_regions == 6
    found = exact_complex(one_layer(W, [0, 0, tiny]), cube(2))
    assert found.n_regions == 7
    assert min(found.volumes) == Fraction(tiny) ** 2 / 2


def test_a_unit_that_vanishes_on_a_cell_is_on_there():
    net = ReluNetwork.from_layers([([[1.0]], [0]), ([[-1.0], [0]], [0, 0]), ([[1, 1]], [0])])
    found = exact_complex(net, (-1, 1))
    assert patterns_of(found) == {(False, True, True), (True, False, True)}


# ---------------------------------------------------------------------- what cells know


@pytest.mark.parametrize("kind", [None, "integer", "handmade", "zero_row_deep"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_maps_vertices_and_signs(kind, d):
    rng = np.random.default_rng(d)
    net = random_network(rng, d, (4, 4)) if kind is None else degenerate_network(kind, d, rng, (4, 4))
    found, rational = exact_complex(net, cube(d)), net.as_fractions()
    for cell, rows, pattern in zip(found.vertices, found.maps, found.patterns, strict=True):
        for x in cell:
            values = [sum(a * v for a, v in zip(row, (*x, 1), strict=True)) for row in rows]
            assert values == rational(x)
            signs = found.vertex_signs[x]
            assert np.array_equal(signs, exact_signs(net, x))
            assert np.all(np.where(pattern, signs >= 0, signs <= 0))
        middle = [sum(column) / len(cell) for column in zip(*cell, strict=True)]
        assert np.array_equal(rational.pattern(middle), pattern)


def test_vertices_come_in_order():
    net = reference_network((2, 8, 8, 1), 3)
    found = exact_complex(net, cube(2))
    for cell, area in zip(found.vertices, found.volumes, strict=True):
        turns = zip(cell, cell[1:] + cell[:1], strict=True)
        assert sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in turns) / 2 == area
    line = exact_complex(reference_network((1, 8, 8, 1), 3), cube(1))
    ends = sorted((low, high) for ((low,), (high,)) in line.vertices)
    assert all(low < high for low, high in ends)
    assert [low for low, _ in ends[1:]] == [high for _, high in ends[:-1]]


def test_facets_name_everything_that_holds_them():
    # A quarter of the square: twice the same fold at the left, the box at the right and above.
    net = one_layer([[1, 0], [-2, 0], [0, 1], [0, 0]], [0, 0, 0, 0])
    quarter = exact_cells_within(net, cube(2), [1, 0, 1, 0])
    (facets,) = quarter.facets
    assert set(facets) == {frozenset({0, 1}), frozenset({2}), frozenset({4 + 1}), frozenset({4 + 3})}


@pytest.mark.parametrize("d", [1, 2, 3])
def test_neighbours_are_the_inner_facets(d):
    found = exact_complex(degenerate_network("integer", d, np.random.default_rng(5), (4, 3)), cube(d))
    reached, grew = {0}, True
    while grew:
        new = {j for pair in found.neighbours for j in pair if reached & set(pair)} - reached
        reached, grew = reached | new, bool(new)
    assert reached == set(range(found.n_regions))
    for i, j in found.neighbours:
        shared = set(found.vertices[i]) & set(found.vertices[j])
        assert i < j and len(shared) >= d
        assert np.any(found.patterns[i] != found.patterns[j])


def test_cells_with_one_map_are_one_piece():
    # relu(x) - relu(-x) = x has no fold left, and the third unit is not read.
    net = ReluNetwork.from_layers([([[1.0], [-1], [1]], [0, 0, -0.5]), ([[1, -1, 0]], [0])])
    found = exact_complex(net, (-1, 1))
    assert found.n_regions == 3 and found.n_pieces == 1


def test_order_and_scale_of_units_do_not_matter():
    rng = np.random.default_rng(0)
    net = random_network(rng, 2, (6, 5))
    layers = [(W.copy(), b.copy()) for W, b in net.layers]
    scaled = ReluNetwork.from_layers(scaled_layers(layers, rng))
    assert patterns_of(exact_complex(scaled, cube(2))) == patterns_of(exact_complex(net, cube(2)))
    order = rng.permutation(6)
    layers[0] = (layers[0][0][order], layers[0][1][order])
    layers[1] = (layers[1][0][:, order], layers[1][1])
    shuffled = exact_complex(ReluNetwork.from_layers(layers), cube(2))
    assert sorted(shuffled.volumes) == sorted(exact_complex(net, cube(2)).volumes)


# ---------------------------------------------------------------------- parts of a complex


@pytest.mark.parametrize("kind", [None, "integer", "duplicate", "opposite", "handmade", "zero_row_deep"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_cells_within_states_are_those_cells(kind, d):
    rng = np.random.default_rng(d)
    net = random_network(rng, d, (4, 4)) if kind is None else degenerate_network(kind, d, rng, (4, 4))
    everything = exact_complex(net, cube(d))
    for _ in range(10):
        states = np.zeros(net.size, dtype=np.int8)
        known = int(rng.integers(net.size + 1))
        pattern = everything.patterns[rng.integers(everything.n_regions)]
        states[:known] = np.where(pattern[:known], 1, -1)
        # The units of a layer that are decided need not come first in it.
        width = net.hidden_widths[0]
        start = 0 if known < width else width
        states[start:] = rng.permutation(states[start:])
        within = exact_cells_within(net, cube(d), states)
        wanted = {tuple(row) for row in everything.patterns if _satisfies(row, states, everything, net)}
        assert patterns_of(within) == wanted
        assert exact_count(net, cube(d), states) == (len(wanted), True)


def _satisfies(row, states, everything, net):
    """Whether a cell has the states; a unit that vanishes on the cell has both."""
    i = next(i for i, other in enumerate(everything.patterns) if np.array_equal(other, row))
    vanishes = np.all([everything.vertex_signs[x] == 0 for x in everything.vertices[i]], axis=0)
    return bool(np.all((states == 0) | vanishes | (np.where(row, 1, -1) == states)))


def test_states_that_no_point_or_only_a_thin_set_has():
    net = one_layer([[1, 0], [-1, 0], [0, 1]], [0, 0, 5])
    assert exact_cells_within(net, cube(2), [1, 1, 0]).n_regions == 0  # the line x = 0
    assert exact_cells_within(net, cube(2), [0, 0, -1]).n_regions == 0
    assert exact_count(net, cube(2), [-1, -1, 1]) == (0, True)
    assert exact_cells_within(net, cube(2), [1, 0, 1]).n_regions == 1


def test_a_smaller_box_that_holds_the_cells_gives_the_same_cells():
    net = reference_network((2, 8, 8, 1), 1)
    everything = exact_complex(net, cube(2))
    for pattern, cell in zip(everything.patterns, everything.vertices, strict=True):
        around = Box.around(np.array(cell, dtype=float))
        larger = Box(around.lower - 1e-9, around.upper + 1e-9)
        within = exact_cells_within(net, larger, np.where(pattern, 1, -1))
        inside = all(-1 < v < 1 for x in cell for v in x)
        assert within.n_regions == 1
        assert not inside or sorted(within.vertices[0]) == sorted(cell)


# ---------------------------------------------------------------------- limits and bad input


def test_limits_give_true_cells_and_say_that_more_exist():
    net = reference_network((2, 16, 16, 1), 0)
    everything = exact_complex(net, cube(2))
    few = exact_complex(net, cube(2), max_cells=10)
    assert few.n_regions == 10 and not few.complete and "incomplete" in repr(few)
    assert patterns_of(few) <= patterns_of(everything)
    assert exact_complex(net, cube(2), max_cells=391).complete
    none = exact_complex(net, cube(2), budget=0)
    assert none.n_regions == 0 and not none.complete and none.patterns.shape == (0, 32)
    assert exact_count(net, cube(2), budget=0) == (0, False)


def test_a_network_without_hidden_layers_is_one_cell():
    found = exact_complex(ReluNetwork.from_layers([([[1, 2]], [3])]), cube(2))
    assert (
        found.n_regions == found.n_pieces == 1 and found.growth == () and found.patterns.shape == (1, 0)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"box": ([0, 0], [1, 0])}, "coordinate 1 has lower = upper"),
        ({"box": cube(3)}, "the network takes 2"),
        ({"states": [0, 0]}, "each of the 3 units"),
        ({"states": [0, 0, 2]}, "each of the 3 units"),
        ({"max_cells": -1}, "max_cells must be"),
        ({"budget": nan}, "budget must be"),
        ({"budget": -inf}, "budget must be"),
    ],
)
def test_bad_input(arguments, message):
    net = one_layer(np.eye(3, 2), [0, 0, 1])
    with pytest.raises(ValueError, match=message):
        exact_cells_within(**({"net": net, "box": cube(2), "states": None} | arguments))


def test_signs_need_a_point_of_the_right_length():
    with pytest.raises(ValueError, match="takes 2 inputs"):
        exact_signs(one_layer(np.eye(2), [0, 0]), [1.0])
