"""Composed zigzags: their pieces counted exactly, their sizes as the theorem says."""

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.circuits.arithmetic import depth, hidden_widths, size
from pindown.circuits.depth_separation import (
    composed_zigzags,
    even_sawtooth,
    pieces_of_zigzags,
    zigzag_function,
)
from pindown.circuits.piecewise_1d import PiecewiseLinear1D


def random_peaks(rng, p, height=1):
    return sorted(Fraction(int(v), 60) * height for v in rng.choice(np.arange(1, 60), p, replace=False))


def pieces_inside(f, height):
    """The kinks between 0 and M with both ends."""
    return [0, *(a for a in f.breakpoints if 0 < a < height), height]


@pytest.mark.parametrize(
    ("w", "k"), [(2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (5, 1), (5, 2)]
)
@pytest.mark.parametrize("height", [1, Fraction(7, 2)])
def test_pieces_sizes_and_ranges_are_as_the_theorem_says(w, k, height):
    rng = np.random.default_rng(10 * w + k)
    net = composed_zigzags([random_peaks(rng, w - 1, height) for _ in range(k)], height)
    assert hidden_widths(net) == (w,) * k and size(net) == w * k and depth(net) == k + 1
    f = PiecewiseLinear1D.from_network(net)
    ends = pieces_inside(f, height)
    assert f.on(0, height) == w**k == pieces_of_zigzags([w] * k)
    extra = 1 if k == 1 or w % 2 else 2
    assert f.n_pieces == w**k + extra == pieces_of_zigzags([w] * k, on_line=True)
    # Every piece goes from 0 to M or back.
    heights = [f.at(a) for a in ends]
    assert heights == [height * (i % 2) for i in range(w**k + 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("w", "k"), [(3, 4), (4, 3), (4, 4), (5, 3), (5, 4)])
def test_many_pieces(w, k):
    rng = np.random.default_rng(w)
    net = composed_zigzags([random_peaks(rng, w - 1) for _ in range(k)])
    f = PiecewiseLinear1D.from_network(net)
    assert f.on(0, 1) == w**k and f.n_pieces == pieces_of_zigzags([w] * k, on_line=True)


@pytest.mark.parametrize("widths", [(3, 2), (2, 3), (3, 3, 2), (3, 2, 3), (2, 2, 3), (5, 3, 2)])
def test_zigzags_of_different_widths(widths):
    rng = np.random.default_rng(sum(widths))
    net = composed_zigzags([random_peaks(rng, w - 1) for w in widths])
    f = PiecewiseLinear1D.from_network(net)
    assert f.on(0, 1) == pieces_of_zigzags(widths) == np.prod(widths)
    assert f.n_pieces == pieces_of_zigzags(widths, on_line=True)


def test_floats_give_the_same_zigzags():
    peaks = [[0.2, 0.7], [0.5, 0.6]]
    net = composed_zigzags(peaks)
    x = np.linspace(-1, 1, 201)
    assert isinstance(net, ReluNetwork)
    first, second = (lambda t, a=a: np.interp(t, [0, *a, 1], [0, 1, 0, 1]) for a in peaks)
    np.testing.assert_allclose(net(x[:, None]).ravel(), second(first(x)), atol=1e-12)
    np.testing.assert_allclose(zigzag_function(peaks[0])(x[:, None]).ravel(), first(x), atol=1e-12)


def test_printed_shape_of_the_sawtooth_is_wrong():
    """Mukherjee 2020, proof of Theorem 2.3.6: a in Delta^{q-1}, width w + 1; right are w - 1 and w."""
    w, k = 3, 2
    q = w**k
    saw = even_sawtooth(w, k)
    f = PiecewiseLinear1D.from_network(saw)
    assert hidden_widths(saw) == (w, w) and max(hidden_widths(saw)) != w + 1
    assert f.on(0, 1) == q and [f.at(Fraction(i, q)) for i in range(q + 1)] == [
        i % 2 for i in range(q + 1)
    ]
    # With q - 1 numbers in each vector, as printed, the composition has far more than q pieces.
    printed = composed_zigzags([[Fraction(i, q) for i in range(1, q)]] * k)
    assert PiecewiseLinear1D.from_network(printed).on(0, 1) == q**k != q


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zigzag_function([]), "one or more"),
        (lambda: zigzag_function([0]), "0 < a_1"),
        (lambda: zigzag_function([Fraction(1, 2), Fraction(1, 2)]), "0 < a_1"),
        (lambda: zigzag_function([2]), "a_p < 1"),
        (lambda: zigzag_function([0.5], float("nan")), "finite"),
        (lambda: composed_zigzags([]), "got none"),
        (lambda: pieces_of_zigzags([]), "got none"),
        (lambda: pieces_of_zigzags([2, 1]), r"widths\[1\] must be an integer of at least 2"),
        (lambda: even_sawtooth(1, 2), "width must be"),
        (lambda: even_sawtooth(2, 0), "layers must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
