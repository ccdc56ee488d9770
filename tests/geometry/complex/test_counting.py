"""Counting: the published numbers, exact rationals, and what budgets and bad input do."""

import time

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.complex.counting import count_regions, region_count
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex, exact_count
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network, reference_network

PUBLISHED = [
    ((2, 16, 16, 1), 0, 391),
    ((2, 16, 16, 1), 1, 278),
    ((2, 32, 32, 1), 0, 1254),
    ((2, 32, 32, 1), 1, 969),
    ((2, 64, 64, 1), 0, 4636),
    ((2, 128, 128, 1), 0, 20845),
    ((2, 128, 128, 1), 1, 19311),
    ((2, 32, 32, 32, 32, 1), 0, 4462),
    ((2, 32, 32, 32, 32, 1), 1, 3302),
    ((2, 256, 256, 1), 0, 83696),
    ((3, 16, 16, 1), 0, 2543),
    ((3, 16, 16, 1), 1, 2433),
    ((3, 32, 32, 1), 0, 21980),
    ((3, 32, 32, 1), 1, 33201),
    ((4, 16, 16, 1), 0, 21182),
    ((4, 16, 16, 1), 1, 15673),
    ((5, 16, 16, 1), 0, 95821),
    ((5, 16, 16, 1), 1, 85121),
]


@pytest.mark.parametrize(("widths", "seed", "count"), PUBLISHED)
def test_counts_that_other_tools_agree_on(widths, seed, count):
    assert count_regions(reference_network(widths, seed), cube(widths[0])) == count


@pytest.mark.parametrize(("widths", "seed", "count"), [PUBLISHED[i] for i in (0, 4, 7, 10, 12, 14)])
def test_certified_counts_need_no_exact_arithmetic_on_random_networks(widths, seed, count):
    result = region_count(reference_network(widths, seed), cube(widths[0]), certified=True)
    assert (result.n_regions, result.complete, result.n_exact) == (count, True, 0)


@pytest.mark.parametrize("widths", [(2, 64, 64, 1), (3, 32, 32, 1)])
@pytest.mark.parametrize("certified", [False, True])
def test_threads_count_the_same(widths, certified):
    net, box = reference_network(widths, 0), cube(widths[0])
    one, two = (region_count(net, box, n_jobs=n, certified=certified) for n in (1, 3))
    assert (one.n_regions, one.growth, one.complete) == (two.n_regions, two.growth, two.complete)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_networks_count_as_rationals_do(kind, d):
    rng = np.random.default_rng(d)
    for _ in range(3):
        net = degenerate_network(kind, d, rng)
        truth = exact_complex(net, cube(d))
        for certified in (False, True):
            result = region_count(net, cube(d), certified=certified)
            assert (result.n_regions, result.growth) == (truth.n_regions, truth.growth)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_certified_walks_decide_ties_themselves(kind, d):
    # Zeros are proved by separation bounds or residues; no cell is left to rational arithmetic.
    net = degenerate_network(kind, d, np.random.default_rng(10 + d), (7, 7))
    result = region_count(net, cube(d), certified=True)
    assert (result.n_regions, result.n_exact) == (exact_count(net, cube(d))[0], 0)


@pytest.mark.parametrize("shift", [2.0**-52, -(2.0**-52), 2.0**-60])
def test_a_fold_that_misses_a_crossing_by_a_rounding_is_not_a_tie(shift):
    # Three lines through (1/3, 1/3), which no float64 is, but for the last place of a bias.
    exact = ReluNetwork.from_layers([([[3, 0], [0, 3], [3, 3]], [-1, -1, -2]), ([[1, 1, 1]], [0])])
    assert count_regions(exact, cube(2), certified=True) == 6
    (W, b), last = exact.layers
    moved = ReluNetwork.from_layers([(np.vstack([W, [[1, 0]]]), [*b, shift]), (np.ones((1, 4)), [0])])
    near = ReluNetwork.from_layers([([[3, 0], [0, 3], [3, 3]], [-1 + shift, -1, -2]), last])
    for net in (moved, near):
        assert count_regions(net, cube(2), certified=True) == exact_count(net, cube(2))[0]


def test_threads_decide_ties_as_one_does():
    for d, kind in ((2, "zero_bias"), (3, "integer"), (3, "zero_bias")):
        net = degenerate_network(kind, d, np.random.default_rng(4), (9, 9))
        one, three = (region_count(net, cube(d), n_jobs=n, certified=True) for n in (1, 3))
        assert (one.n_regions, one.growth, one.n_exact) == (three.n_regions, three.growth, 0)


@pytest.mark.parametrize("block", range(6))
def test_three_hundred_small_networks_count_as_rationals_do(block):
    # The same family that exact arithmetic is compared with brute force on.
    rng = np.random.default_rng(1000 + block)
    for i in range(50):
        d = 1 + i % 4
        widths = tuple(rng.integers(2, 6 if d > 2 else 9, size=rng.integers(1, 4)).tolist())
        if i % 2 and len(widths) > 1:
            net = degenerate_network(KINDS[(i // 2) % len(KINDS)], min(d, 3), rng, widths)
        else:
            net = random_network(rng, d, widths)
        box = cube(net.in_features)
        assert count_regions(net, box) == exact_count(net, box)[0]


def test_many_facets_on_one_cell():
    # Planes tangent to a ball leave one cell with all of them as facets, far more than 64.
    rng = np.random.default_rng(0)
    normals = rng.standard_normal((90, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    net = ReluNetwork.from_layers([(normals, -np.full(90, 0.5)), (np.ones((1, 90)), [0])])
    deep = ReluNetwork.from_layers([*net.layers, ([[1.0]], [0])])
    truth = exact_count(net, cube(3))[0]
    assert count_regions(net, cube(3)) == count_regions(deep, cube(3)) == truth
    cx = polyhedral_complex(net, cube(3))
    inner = cx.regions[int(cx.locate(np.zeros((1, 3)))[0])]
    assert cx.n_regions == truth and len(inner.facets) > 64
    assert region_count(deep, cube(3), n_jobs=2).n_regions == truth


def test_boxes_off_centre_and_of_unequal_sides():
    net = random_network(np.random.default_rng(3), 2, (8, 8))
    box = Box([-0.7, 3e-3], [0.1, 1.9])
    assert count_regions(net, box) == exact_count(net, box)[0]
    tiny = Box([0.1, 0.1], [0.1 + 1e-7, 0.1 + 2e-7])
    assert count_regions(net, tiny) == exact_count(net, tiny)[0]


def test_order_and_scale_of_units_do_not_matter():
    rng = np.random.default_rng(5)
    net = random_network(rng, 3, (9, 9))
    (W1, b1), (W2, b2), (W3, b3) = net.layers
    p, q = rng.permutation(9), rng.permutation(9)
    m, s = 2.0 ** rng.integers(-6, 6, 9), 2.0 ** rng.integers(-6, 6, 9)
    other = ReluNetwork.from_layers(
        [
            (m[:, None] * W1[p], m * b1[p]),
            (s[:, None] * W2[q][:, p] / m, s * b2[q]),
            (W3[:, q] / s, b3),
        ]
    )
    assert count_regions(net, cube(3)) == count_regions(other, cube(3))


def test_affine_networks_are_one_region():
    net = ReluNetwork.from_layers([([[1.0, 2.0]], [3])])
    assert count_regions(net, cube(2)) == 1


def test_budget_ends_the_count_with_a_lower_bound(monkeypatch):
    """By the seconds of this process, and where loops are not compiled: then few cells are found."""
    monkeypatch.setattr(time, "monotonic", time.process_time)
    net = reference_network((6, 32, 32, 1), 0)
    region_count(net, cube(6), budget=0.01)  # what is loaded at first use is no part of a budget
    began = time.process_time()
    result = region_count(net, cube(6), budget=1.0)
    assert not result.complete and result.n_regions > 10
    assert time.process_time() - began < 1.5
    assert str(result).startswith("at least")


def test_a_budget_of_nothing_gives_nothing():
    result = region_count(reference_network((2, 16, 16, 1), 0), cube(2), budget=0)
    assert (result.n_regions, result.complete) == (0, False)


def test_progress_is_told():
    seen = []

    def report(what, done, total):
        assert what == "cells" and total is None
        seen.append(done)

    region_count(reference_network((2, 64, 64, 1), 0), cube(2), progress=report)
    assert seen[-1] == 4636 and seen == sorted(seen)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (([0, 0], [0, 1]), "flat in coordinate 0"),
        (([0, 0, 0], [1, 1, 1]), "3 dimensions"),
        (([1, 1], [0, 0]), "lower <= upper"),
        (([0, -np.inf], [1, 1]), "finite"),
        ("nonsense", "pair"),
    ],
)
def test_bad_boxes_are_explained(box, message):
    with pytest.raises(ValueError, match=message):
        count_regions(reference_network((2, 4, 1), 0), box)


def test_bad_arguments_are_explained():
    net = reference_network((2, 4, 1), 0)
    with pytest.raises(ValueError, match="n_jobs"):
        count_regions(net, cube(2), 0)
    with pytest.raises(ValueError, match="budget"):
        region_count(net, cube(2), budget=float("nan"))
    with pytest.raises(ValueError, match="up to 12 inputs"):
        count_regions(reference_network((13, 4, 1), 0), cube(13))
