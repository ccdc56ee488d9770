"""Generality: the three conditions against brute force in rationals, and networks that break each."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.conditions._full_rank import rank_violations, seen_patterns, seen_rank_violations
from pindown.geometry.conditions._parallel_maps import parallel_violations, seen_parallel_violations
from pindown.geometry.conditions.generality import check_generality
from pindown.geometry.exact.linear_algebra import (
    PRIME,
    as_integers,
    direction,
    directions,
    integer_rank,
    multiply,
    ranks,
    residues,
)


def gaussian(rng, widths):
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairwise(widths)]
    )


def integer_net(rng, widths):
    return ReluNetwork.from_layers(
        [(rng.integers(-3, 4, (m, n)), rng.integers(-3, 4, m)) for n, m in pairwise(widths)]
    )


def edited(net, layer, edit):
    layers = [(np.array(W), np.array(b)) for W, b in net.layers]
    edit(*layers[layer - 1])
    return ReluNetwork.from_layers(layers)


# ---------------------------------------------------------------- brute force, straight from the text


def fraction_rank(matrix):
    rows, rank = [list(row) for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def subsets(n):
    return [s for size in range(n + 1) for s in combinations(range(n), size)]


def breaks_rank_condition(net):
    weights = [W for W, _ in net.as_fractions().layers]
    for k in range(net.depth):
        for last in range(k, net.depth):
            choices = [subsets(len(W)) for W in weights[k : last + 1]]
            if last == net.depth - 1:
                choices[-1] = [tuple(range(net.out_features))]
            for chosen in product(*choices):
                matrix = weights[k][list(chosen[0])]
                for j in range(1, len(chosen)):
                    matrix = weights[k + j][list(chosen[j])][:, list(chosen[j - 1])] @ matrix
                full = min(weights[k].shape[1], *map(len, chosen))
                if full and fraction_rank(matrix) < full:
                    return True
    return False


def parallel_pairs(net):
    """All pairs of distinct (layer, unit, pattern below) with proportional or zero maps."""
    maps = []
    layers = net.as_fractions().layers
    for layer in range(1, net.depth + 1):
        for on in product(*(subsets(width)[1:] for width in net.widths[1:layer])):
            W, b = layers[0]
            rows = np.column_stack([W, b])
            for (W, b), units in zip(layers[1:layer], on, strict=True):
                rows = W[:, list(units)] @ rows[list(units)]
                rows[:, -1] += b
            maps += [((layer, unit), row) for unit, row in enumerate(rows)]
    zero = {place for place, row in maps if not any(row)}
    pairs = set()
    for (p, u), (q, v) in combinations(maps, 2):
        if any(u) and any(v) and fraction_rank([list(u), list(v)]) < 2:
            pairs.add((max(p, q), min(p, q)))
    return zero, pairs


@pytest.mark.parametrize("seed", range(12))
def test_rank_condition_agrees_with_rational_elimination(seed):
    rng = np.random.default_rng(seed)
    net = integer_net(rng, (2, 3, 2, 1)) if seed % 3 else gaussian(rng, (2, 3, 2, 2))
    assert bool(rank_violations(net)) == breaks_rank_condition(net)


@pytest.mark.parametrize("seed", range(12))
def test_parallel_condition_agrees_with_rational_elimination(seed):
    rng = np.random.default_rng(seed)
    net = integer_net(rng, (2, 3, 2, 1)) if seed % 3 else gaussian(rng, (2, 3, 2, 2))
    zero, pairs = parallel_pairs(net)
    found = parallel_violations(net)
    named = {(v.layer, v.units[0]) for v in found}
    assert bool(found) == bool(zero or pairs)
    assert zero <= named <= zero | {p for p, _ in pairs}


# ---------------------------------------------------------------- the theorem: almost all are general


@pytest.mark.parametrize("widths", [(1, 3, 1), (2, 4, 5, 1), (3, 5, 4, 2), (2, 4, 4, 4, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_gaussian_networks_are_general(widths, seed):
    net = gaussian(np.random.default_rng(seed), widths)
    report = check_generality(net, (-2, 2))
    assert report.ok and report.exhaustive and str(report).startswith("general (")


def test_gaussian_networks_too_large_to_enumerate_pass_but_prove_nothing():
    report = check_generality(gaussian(np.random.default_rng(0), (10, 20, 20, 3)), (-1, 1), samples=300)
    assert report.ok and not report.exhaustive and report.checked["G2"] == "sampled"


def test_all_subsets_are_too_many_for_maps_before_they_are_for_ranks():
    report = check_generality(gaussian(np.random.default_rng(0), (2, 7, 7, 1)))
    assert report.checked == {"G1": "untested", "G2": "all patterns", "G3": "sampled"} and report.ok


# ---------------------------------------------------------------- networks that are not


def zero_weight(W, b):
    W[2, 1] = 0


def proportional_rows(W, b):
    W[3], b[3] = -2 * W[0], -2 * b[0]


def parallel_weights(W, b):
    W[3] = 4 * W[0]


@pytest.mark.parametrize("widths", [(2, 4, 4, 1), (4, 12, 9, 2)])
@pytest.mark.parametrize(
    ("layer", "edit", "condition", "units"),
    [
        (2, zero_weight, "G2", (2,)),
        (1, proportional_rows, "G3", (3,)),
        (2, proportional_rows, "G3", (3,)),
        (1, parallel_weights, "G2", (0, 3)),
    ],
)
def test_violations_name_layer_and_units(widths, layer, edit, condition, units):
    net = edited(gaussian(np.random.default_rng(5), widths), layer, edit)
    report = check_generality(net)
    assert not report and not report.ok
    named = [v for v in report.violations if (v.condition, v.layer) == (condition, layer)]
    if condition == "G2" and widths[0] > 2 and edit is parallel_weights:
        named = [v for v in report.violations if v.condition == "G2"]  # seen patterns hold more units
        assert any(set(units) <= set(v.units) for v in named if v.layer == layer)
    else:
        assert units in [v.units for v in named]
    assert f"{condition}, layer {layer}" in str(report)


def test_bias_free_networks_are_not_general():
    net = gaussian(np.random.default_rng(0), (2, 3, 3, 1))
    free = ReluNetwork.from_layers([(W, 0 * b) for W, b in net.layers])
    report = check_generality(free, (-1, 1))
    assert {v.condition for v in report.violations} >= {"G3"}
    shallow = check_generality(free[:2], (-1, 1))
    assert not shallow.ok


def test_a_zeroed_weight_of_the_first_layer_alone_is_no_violation():
    def edit(W, b):
        W[1, 0] = 0

    assert check_generality(edited(gaussian(np.random.default_rng(1), (2, 4, 3, 1)), 1, edit)).ok


def test_condition_three_needs_distinct_pairs_and_non_trivial_patterns():
    """Phuong 2021, section 2.2, condition 3 as printed compares a unit with itself: nothing passes."""
    net = gaussian(np.random.default_rng(0), (2, 2, 2, 1))
    # A unit is a multiple (once) of itself on its own linear region, and two units below which all is
    # off are the constants b_1 and b_2, which are multiples of each other.
    x = np.array([0.1, 0.2])
    A, c = net[:1].local_affine(x)
    assert np.array_equal(np.append(A[0], c[0]), 1.0 * np.append(A[0], c[0]))
    off = np.array([False, False])
    A, c = net[:2].affine_of_pattern(off)
    assert (
        not A.any() and c.all() and fraction_rank([[0, 0, Fraction(c[0])], [0, 0, Fraction(c[1])]]) == 1
    )
    assert check_generality(net).ok  # as Lemma A.11 reads


# ---------------------------------------------------------------- zero optima


def hat(top):
    """The unit ``top - |x| - |y|`` behind a layer of absolute values."""
    W1 = np.vstack([np.eye(2), -np.eye(2)])
    return ReluNetwork.from_layers([(W1, np.zeros(4)), ([[-1, -1, -1, -1]], [top]), ([[1]], [0])])


@pytest.mark.parametrize(("top", "violated"), [(0, True), (0.5, False), (-0.5, False)])
def test_zero_maximum(top, violated):
    found = [v for v in check_generality(hat(top), (-1, 1)).violations if v.condition == "G1"]
    assert bool(found) == violated
    if violated:
        assert "maximum of value 0 at (0, 0)" in str(found[0]) and found[0].layer == 2


def test_zero_optimum_along_an_edge_and_on_a_plateau():
    # |x| along the line x = 0, and relu(x) off everywhere left of it: both on the square.
    ridge = ReluNetwork.from_layers([([[1, 0], [-1, 0]], [0, 0]), ([[1, 1]], [0]), ([[1]], [0])])
    plateau = ReluNetwork.from_layers([([[1, 0]], [0]), ([[1]], [0]), ([[1]], [0])])
    for net in (ridge, plateau):
        found = [v for v in check_generality(net, (-1, 1)).violations if v.condition == "G1"]
        assert len(found) == 1 and "minimum of value 0" in found[0].detail


def test_zero_optimum_on_the_side_of_the_box_does_not_count():
    ramp = ReluNetwork.from_layers([([[1.0]], [0.5]), ([[1.0]], [-0.5]), ([[1.0]], [0])])
    box = Box([0], [1])  # relu(x + 1/2) - 1/2 = x has its minimum 0 at the end of the box
    assert not [v for v in check_generality(ramp, box).violations if v.condition == "G1"]


def test_zero_plateau_is_found_by_samples_in_many_dimensions():
    W1 = -np.ones((2, 6))
    W1[1] *= 2
    net = ReluNetwork.from_layers([(W1, [-1, -1]), ([[1, 2], [3, 1]], [0, 1]), ([[1, 1]], [0])])
    report = check_generality(net, (0, 1))
    assert report.checked["G1"] == "sampled"
    assert [v.units for v in report.violations if v.condition == "G1"] == [(0,)]


# ---------------------------------------------------------------- exact arithmetic underneath


def test_residues_multiply_like_the_numbers():
    rng = np.random.default_rng(0)
    A, B = (
        rng.standard_normal((5, 7)) * 2.0 ** rng.integers(-80, 80, (5, 7)),
        rng.standard_normal((7, 4)),
    )
    exact = np.array([[Fraction(x) for x in row] for row in A]) @ [
        [Fraction(x) for x in row] for row in B
    ]
    inverse = [[x.numerator * pow(x.denominator, -1, PRIME) % PRIME for x in row] for row in exact]
    assert np.array_equal(multiply(residues(A), residues(B)), inverse)


def test_modular_ranks_agree_with_elimination():
    rng = np.random.default_rng(0)
    stack = rng.integers(-1, 2, (200, 4, 5)).astype(float)
    assert ranks(residues(stack)).tolist() == [integer_rank(as_integers(M)[0]) for M in stack]
    assert ranks(residues(stack)).tolist() == np.linalg.matrix_rank(stack).tolist()
    tall = stack.transpose(0, 2, 1)
    assert np.array_equal(ranks(residues(tall)), ranks(residues(stack)))


def test_directions_are_equal_exactly_for_parallel_rows():
    rng = np.random.default_rng(0)
    v = rng.standard_normal(4)
    rows = np.stack([v, -2.0 * v, 0.1 * v])  # the last one is rounded, so it is not parallel
    modular, exact = directions(residues(rows)), [direction(row) for row in as_integers(rows)[0]]
    assert (modular[0] == modular[1]).all() and exact[0] == exact[1]
    assert (modular[0] != modular[2]).any() and exact[0] != exact[2]


@pytest.mark.parametrize("seed", range(5))
def test_seen_patterns_never_invent_violations(seed):
    rng = np.random.default_rng(seed)
    net = integer_net(rng, (2, 4, 3, 1))
    seen = seen_patterns(net, Box.cube(2, -2, 2), 200, rng)
    assert seen[0].all() and len(np.unique(seen, axis=0)) == len(seen)
    if seen_rank_violations(net, seen):
        assert rank_violations(net)
    if seen_parallel_violations(net, seen, rng):
        assert parallel_violations(net)


def test_networks_without_hidden_layers():
    assert check_generality(ReluNetwork.from_layers([([[1.0, 2.0]], [3])]), (-1, 1)).ok
    assert not check_generality(ReluNetwork.from_layers([([[0.0, 0.0]], [3])]), (-1, 1)).ok


def test_bad_input():
    net = gaussian(np.random.default_rng(0), (2, 3, 1))
    with pytest.raises(ValueError, match="samples must be an integer of at least 0; got -1"):
        check_generality(net, samples=-1, budget=30)
    with pytest.raises(ValueError, match="budget must be a number of at least 0; got nan"):
        check_generality(net, budget=float("nan"))
    with pytest.raises(ValueError, match="the box has 3 dimensions"):
        check_generality(net, Box.cube(3, 0, 1))
