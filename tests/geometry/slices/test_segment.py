"""Networks on segments, against exact rational arithmetic along the segment."""

from fractions import Fraction
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import pytest

import pindown as pn
from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.slices import _segment_sweep as sweep
from pindown.geometry.slices.segment import (
    along_segment,
    along_segments,
    count_pieces_on_line,
    line_complex,
)
from tests.geometry.oracles import KINDS, degenerate_network

MNIST = Path("../shared/models/mnist_256x4.onnx.gz")


def random_net(rng, widths):
    return ReluNetwork.from_layers(
        [
            (rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m) / 3)
            for n, m in pairwise(widths)
        ]
    )


def integer_net(rng, widths):
    return ReluNetwork.from_layers(
        [(rng.integers(-2, 3, (m, n)), rng.integers(-2, 3, m)) for n, m in pairwise(widths)]
    )


def exact_folds(net, a, b):
    """Knots, patterns, switches (time, unit, visible) and slopes, with fractions throughout.

    A unit counts as on where it is zero; it switches where its states on two neighbouring intervals
    differ. New knots are only strict changes of sign.
    """
    rational = net.as_fractions()
    start = [Fraction(float(v)) for v in a]
    step = [Fraction(float(v)) - u for u, v in zip(start, b, strict=True)]

    def trace(t):
        return rational.trace([u + t * s for u, s in zip(start, step, strict=True)])

    knots = [Fraction(0), Fraction(1)]
    for level in range(net.depth - 1):
        found = set(knots)
        for t0, t1 in pairwise(knots):
            for z0, z1 in zip(trace(t0)[level], trace(t1)[level], strict=True):
                if z0 * z1 < 0:
                    found.add(t0 + (t1 - t0) * z0 / (z0 - z1))
        knots = sorted(found)
    patterns = [
        np.concatenate([z >= 0 for z in trace((t0 + t1) / 2)[:-1]]).astype(bool)
        for t0, t1 in pairwise(knots)
    ]
    values = [trace(t)[-1] for t in knots]
    slopes = [(v - u) / (t - s) for (s, u), (t, v) in pairwise(zip(knots, values, strict=True))]
    switches = [
        (knots[i + 1], int(unit), bool(np.any(slopes[i] != slopes[i + 1])))
        for i in range(len(patterns) - 1)
        for unit in np.flatnonzero(patterns[i] != patterns[i + 1])
    ]
    return knots, np.array(patterns), switches, np.array(slopes, dtype=float)


def check_exact(net, a, b):
    knots, patterns, switches, slopes = exact_folds(net, a, b)
    folds = along_segment(net, a, b)
    np.testing.assert_allclose(folds.knots, [float(t) for t in knots], atol=1e-12)
    np.testing.assert_allclose(folds.t, [float(t) for t, _, _ in switches], atol=1e-12)
    assert folds.units.tolist() == [unit for _, unit, _ in switches]
    assert folds.visible.tolist() == [seen for _, _, seen in switches]
    assert (folds.patterns == patterns).all()
    np.testing.assert_allclose(folds.slopes, slopes, rtol=1e-9, atol=1e-9 * (1 + np.abs(slopes).max()))
    assert folds.n_pieces == 1 + sum(bool(np.any(u != v)) for u, v in pairwise(exact_slopes(net, a, b)))
    assert folds.n_cells == len(patterns)


def exact_slopes(net, a, b):
    knots, rational = exact_folds(net, a, b)[0], net.as_fractions()
    points = [
        [
            Fraction(float(u)) + t * (Fraction(float(v)) - Fraction(float(u)))
            for u, v in zip(a, b, strict=True)
        ]
        for t in knots
    ]
    values = [np.array(rational(x)) for x in points]
    return [(v - u) / (t - s) for (s, u), (t, v) in pairwise(zip(knots, values, strict=True))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_degenerate_networks_exactly(kind, d):
    rng = np.random.default_rng(d)
    net = degenerate_network(kind, d, rng, (6, 5))
    check_exact(net, rng.uniform(-1, 1, d), rng.uniform(-1, 1, d))
    check_exact(net, -np.ones(d), np.ones(d))  # through the origin, from corner to corner
    check_exact(net, np.zeros(d), np.eye(d)[0])


@pytest.mark.parametrize("seed", range(10))
def test_random_and_integer_networks_exactly(seed):
    rng = np.random.default_rng(seed)
    widths = (3, *rng.integers(2, 7, rng.integers(1, 5)), 2)
    check_exact(random_net(rng, widths), *rng.standard_normal((2, 3)))
    ends = rng.integers(-3, 4, (2, 3)).astype(float)
    if (ends[0] != ends[1]).any():
        check_exact(integer_net(rng, widths), *ends)


def test_units_that_touch_zero_do_not_switch():
    # |x| has a minimum 0 and -|x| a maximum 0; both units of layer 2 touch zero at x = 0.
    layers = [([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0], [-1.0, -1.0]], [0, 0]), ([[1.0, 1.0]], [0])]
    folds = along_segment(ReluNetwork.from_layers(layers), [-1.0], [1.0])
    assert folds.units.tolist() == [0, 1] and folds.t.tolist() == [0.5, 0.5]
    assert folds.n_cells == 2 and folds.n_pieces == 2


def test_units_that_are_zero_for_a_while():
    # relu(relu(x) - 0): zero throughout for x < 0, where it counts as on: it never switches.
    folds = along_segment(
        ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])]),
        [-1.0],
        [1.0],
    )
    # Its opposite is zero, hence on, for x < 0, and off for x > 0: it switches where unit 0 does.
    assert folds.units.tolist() == [0, 2] and folds.patterns.tolist() == [
        [False, True, True],
        [True, True, False],
    ]


def test_folds_at_the_ends_are_not_inside():
    relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    for a, b, on in ((0.0, 1.0, True), (-1.0, 0.0, False)):
        folds = along_segment(relu, [a], [b])
        assert folds.t.size == 0 and folds.n_pieces == 1 and folds.patterns.tolist() == [[on]]


def test_hidden_folds_are_not_visible():
    # relu(x) - relu(x) with two units: both switch, nothing happens.
    net = ReluNetwork.from_layers([([[0.1], [0.3]], [0.7, 2.1]), ([[3.0, -1.0]], [5.0])])
    folds = along_segment(net, [-10.0], [10.0])
    assert len(folds.t) == 2 and not folds.visible.any() and folds.n_pieces == 1


def test_zero_length_and_no_segments():
    net = random_net(np.random.default_rng(0), (3, 5, 4, 2))
    x = np.array([0.1, 0.2, 0.3])
    folds = along_segment(net, x, x)
    assert folds.t.size == 0 and folds.n_pieces == 1 and (folds.slopes == 0).all()
    assert (folds.patterns == net.pattern(x)).all()
    none = along_segments(net, np.zeros((0, 3)), np.zeros((0, 3)))
    assert len(none) == 0 and none.n_pieces.size == 0 and list(none) == []
    affine = along_segment(ReluNetwork.from_layers([([[2.0]], [1])]), [0.0], [3.0])
    assert affine.slopes.tolist() == [[6]] and affine.patterns.shape == (1, 0)


def test_many_at_once_is_the_same_as_one_by_one_and_in_small_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    net = random_net(rng, (4, 30, 20, 20, 3))
    a, b = 3 * rng.standard_normal((2, 40, 4))
    b[7] = a[7]
    many = along_segments(net, a, b)
    monkeypatch.setattr(sweep, "SWEEP_NUMBERS_PER_BLOCK", 1)
    for rows in (2, 3, 7, 16):
        monkeypatch.setattr(sweep, "MIN_SWEEP_ROWS", rows)
        check_equal_folds(along_segments(net, a, b), many)
    monkeypatch.undo()
    for i in (0, 7, 39):
        one = along_segment(net, a[i], b[i])
        assert one.units.tolist() == many[i].units.tolist() and one.n_pieces == many.n_pieces[i]
        np.testing.assert_allclose(one.t, many[i].t, atol=1e-14)


def check_equal_folds(first, second):
    assert (
        first.units.tolist() == second.units.tolist()
        and first.visible.tolist() == second.visible.tolist()
    )
    assert first.offsets.tolist() == second.offsets.tolist()
    np.testing.assert_allclose(first.t, second.t, atol=1e-13)
    np.testing.assert_allclose(first.knots, second.knots, atol=1e-13)
    np.testing.assert_allclose(first.values, second.values, atol=1e-12)


@pytest.mark.parametrize("kind", ["integer", "handmade", "duplicate", "zero_row_deep"])
def test_small_blocks_do_not_lose_ties(kind, monkeypatch):
    rng = np.random.default_rng(1)
    net = degenerate_network(kind, 2, rng, (8, 8))
    a, b = rng.integers(-3, 4, (2, 60, 2)).astype(float)
    whole = along_segments(net, a, b)
    monkeypatch.setattr(sweep, "SWEEP_NUMBERS_PER_BLOCK", 1)
    monkeypatch.setattr(sweep, "MIN_SWEEP_ROWS", 2)
    check_equal_folds(along_segments(net, a, b), whole)


def test_backwards_is_the_mirror_image():
    rng = np.random.default_rng(3)
    net = random_net(rng, (5, 20, 15, 1))
    a, b = rng.standard_normal((2, 5))
    there, back = along_segment(net, a, b), along_segment(net, b, a)
    np.testing.assert_allclose(back.t[::-1], 1 - there.t, atol=1e-13)
    assert back.units[::-1].tolist() == there.units.tolist()
    np.testing.assert_allclose(back.slopes[::-1], -there.slopes, rtol=1e-8, atol=1e-10)


def test_interpolation_is_the_network():
    rng = np.random.default_rng(4)
    net = random_net(rng, (6, 25, 25, 3))
    folds = along_segment(net, *rng.standard_normal((2, 6)))
    t = rng.random(200)
    np.testing.assert_allclose(folds(t), net(folds.at(t)), atol=1e-12)
    z = net.preactivations(folds.points)[np.arange(len(folds.t)), folds.units]
    assert np.abs(z).max() < 1e-12
    assert folds(0.5).shape == (3,) and folds.at(0.5).shape == (6,)
    assert (np.diff(folds.t) >= 0).all() and folds.t.min() > 0 and folds.t.max() < 1


@pytest.mark.parametrize("kind", KINDS)
def test_line_complex_is_the_exact_complex(kind):
    rng = np.random.default_rng(9)
    net = degenerate_network(kind, 1, rng, (7, 6))
    exact = exact_complex(net, Box([-1], [1]))
    found = line_complex(net, -1, 1)
    order = np.argsort([float(min(cell)[0]) for cell in exact.vertices])
    assert (found.patterns == exact.patterns[order]).all()
    ends = sorted({float(v[0]) for cell in exact.vertices for v in cell})
    np.testing.assert_allclose(found.breakpoints, ends[1:-1], atol=1e-12)


def tent(k):
    """k times the map that takes [0, 1] up and down once: 2^k pieces."""
    up = ([[2.0], [4.0]], [0, -2])
    between = ([[2.0, -2.0], [4.0, -4.0]], [0, -2])
    return ReluNetwork.from_layers([up, *[between] * (k - 1), ([[1.0, -1.0]], [0])])


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_sawtooth_has_two_to_the_k_pieces(k):
    assert count_pieces_on_line(tent(k), [0.0], [1.0]) == 2**k
    folds = along_segment(tent(k), [0.0], [1.0])
    np.testing.assert_allclose(folds.knots[1:-1], np.arange(1, 2**k) / 2**k, atol=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_never_exceed_the_bound(seed):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(2, 6, rng.integers(1, 4)).tolist()
    net = random_net(rng, (1, *hidden, 1))
    bound = 2 ** (len(hidden) - 1) * (hidden[0] + 1) * prod(hidden[1:])
    pieces = count_pieces_on_line(net, [0.0], [1.0], (-100, 100))
    # Brute force: slopes on a fine grid; a grid may miss pieces but finds no extra ones.
    x = np.linspace(-100, 100, 20_001)
    change = np.abs(np.diff(net(x[:, None])[:, 0], 2)) > 1e-9
    runs = int(np.count_nonzero(change[1:] & ~change[:-1]) + change[0])
    assert runs + 1 <= pieces <= bound


def test_bad_input_is_refused():
    net = random_net(np.random.default_rng(0), (2, 3, 1))
    with pytest.raises(ValueError, match="same shape"):
        along_segment(net, [0.0, 0.0], [[1.0, 1.0]])
    with pytest.raises(ValueError, match="same shape"):
        along_segment(net, np.zeros((2, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="finite"):
        along_segment(net, [0.0, np.nan], [1.0, 1.0])
    with pytest.raises(ValueError, match="one input"):
        line_complex(net, 0, 1)
    with pytest.raises(ValueError, match="lower <= upper"):
        line_complex(tent(1), 1, 0)
    with pytest.raises(ValueError, match="t_range"):
        count_pieces_on_line(net, [0.0, 0.0], [1.0, 1.0], (1, 1))
    with pytest.raises(ValueError, match="t_range"):
        count_pieces_on_line(net, [0.0, 0.0], [1.0, 1.0], (0, np.inf))
    with pytest.raises(IndexError, match="1 segments"):
        _ = along_segments(net, np.zeros((1, 2)), np.ones((1, 2)))[1]
    huge = ReluNetwork.from_layers([([[1e300]], [0]), ([[1e300]], [0])])
    with pytest.raises(ValueError, match="overflows"):
        along_segment(huge, [0.0], [1e10])


@pytest.mark.skipif(not MNIST.exists(), reason="the public networks are not beside the project")
def test_a_thousand_units_between_random_images():
    net = pn.load(MNIST).relu_network()
    a, b = np.random.default_rng(0).random((2, 20, 784))
    folds = along_segments(net, a, b)
    owner = np.repeat(np.arange(20), np.diff(folds.offsets))
    points = a[owner] + folds.t[:, None] * (b - a)[owner]
    z = net.preactivations(points)[np.arange(len(owner)), folds.units]
    assert np.abs(z).max() < 1e-12
    # Nothing was missed: patterns at the two ends differ by the switches in between.
    flips = np.zeros((20, net.size), dtype=bool)
    np.logical_xor.at(flips, (owner, folds.units), True)
    assert (net.pattern(a) ^ flips == net.pattern(b)).all()
    for i in (0, 1):
        middles = (folds[i].knots[1:] + folds[i].knots[:-1]) / 2
        assert (net.pattern(folds[i].at(middles)) == folds[i].patterns).all()
