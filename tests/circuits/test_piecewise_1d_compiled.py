"""The compiler for one variable: exact on 600 random functions, and never one ReLU too many."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.circuits.arithmetic import size
from pindown.circuits.piecewise_1d import PiecewiseLinear1D, balancing_kinks, compile_1d
from pindown.geometry.counts.bounds import min_size


def random_function(rng, p):
    """A function with p pieces exactly."""
    while True:
        slopes = [Fraction(int(v), 3) for v in rng.integers(-9, 10, p)]
        if all(a != b for a, b in pairwise(slopes)):
            break
    if p == 1:
        return PiecewiseLinear1D([0], [Fraction(int(rng.integers(9)), 7)], slopes[0], slopes[0])
    knots = sorted(Fraction(int(v), 7) for v in rng.choice(np.arange(-200, 200), p - 1, replace=False))
    values = [Fraction(int(rng.integers(-9, 9)), 5)]
    for (a, b), slope in zip(pairwise(knots), slopes[1:-1], strict=True):
        values.append(values[-1] + slope * (b - a))
    return PiecewiseLinear1D(knots, values, slopes[0], slopes[-1])


def places(f):
    middles = [(a + b) / 2 for a, b in pairwise(f.knots)]
    return [*f.knots, *middles, f.knots[0] - 1000, f.knots[-1] + 1000]


@pytest.mark.parametrize("seed", range(6))
def test_one_hundred_random_functions_each_are_compiled_exactly(seed):
    rng = np.random.default_rng(seed)
    for case in range(100):
        p = int(rng.integers(2, 51)) if case % 10 == 0 else int(rng.integers(2, 12))
        f = random_function(rng, p)
        net = compile_1d(f)
        assert len(net.layers) == 2 and size(net) in (p - 1, p)
        for x in places(f):
            assert net([x])[0] == f.at(x)
        back = PiecewiseLinear1D.from_network(net)
        assert (back.knots, back.values, back.slopes) == (f.knots, f.values, f.slopes)


def test_the_floating_compiler_is_as_exact_as_floats_are():
    rng = np.random.default_rng(0)
    for _ in range(100):
        f = random_function(rng, int(rng.integers(1, 30))).rounded()
        net = compile_1d(f)
        assert isinstance(net, ReluNetwork)
        x = np.concatenate([f.knots, rng.uniform(-40, 40, 50)])
        scale = 1 + np.abs(f(x)).max()
        np.testing.assert_allclose(net(x[:, None]).ravel() / scale, f(x) / scale, atol=1e-12)
        assert PiecewiseLinear1D.from_network(net).n_pieces == f.n_pieces


@pytest.mark.parametrize("seed", range(40))
def test_the_least_size_is_found_and_is_least(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 9))
    f = random_function(rng, p)
    net = compile_1d(f, minimize=True)
    assert all(net([x])[0] == f.at(x) for x in places(f))
    # Brute force over all choices of direction: can the kinks alone make up for the slope on the left?
    subsets = (J for r in range(p) for J in combinations(range(p - 1), r))
    possible = any(f.left_slope == -sum(f.jumps[j] for j in J) for J in subsets)
    assert size(net) == (p - 1 if possible else p)
    assert (balancing_kinks(f) is not None) == possible
    assert size(net) >= min_size(p, 1) == p - 1


def test_a_flat_end_saves_one():
    flat_left = PiecewiseLinear1D([0, 1, 3], [0, 2, 1], 0, 5)
    flat_right = PiecewiseLinear1D([0, 1, 3], [0, 2, 1], 5, 0)
    neither = PiecewiseLinear1D([0, 1, 3], [0, 2, 1], 5, 7)
    assert [size(compile_1d(f)) for f in (flat_left, flat_right, neither)] == [3, 3, 4]


def test_printed_equations_for_the_slopes_do_not_give_the_function():
    """Mukherjee 2020, proof of Theorem 2.2.2: b_i = sum_j t_j (a_{j-1} - a_j) must be (a_i - a_j)."""
    a, b = [Fraction(v) for v in (0, 1, 3, 4)], [Fraction(v) for v in (3, 1, 2, 0)]
    s_left, s_right = Fraction(-1), Fraction(2)

    def solved(weight):
        """Back-substitution for t_2, ..., t_{m-1}; t_1 makes the slopes add up to s_left."""
        last = len(a) - 1
        t = [Fraction(0)] * len(a)
        for i in range(last - 1, -1, -1):
            known = sum(t[j] * weight(i, j) for j in range(i + 2, last + 1))
            t[i + 1] = (b[i] - known) / weight(i, i + 1)
        t[0] = s_left - sum(t[1:])
        return lambda x: (
            s_right * max(x - a[-1], 0)
            - sum(slope * max(place - x, 0) for slope, place in zip(t, a, strict=True))
        )

    printed = solved(lambda _, j: a[j - 1] - a[j])
    correct = solved(lambda i, j: a[i] - a[j])
    ours = compile_1d(PiecewiseLinear1D(a, b, s_left, s_right))
    assert [printed(x) for x in a] != b
    assert [correct(x) for x in a] == b == [ours([x])[0] for x in a]


def test_printed_bound_p_fails_for_one_piece():
    """Mukherjee 2020, Theorem 2.2.2: an affine function has p = 1 piece but needs 2 ReLUs."""
    line = PiecewiseLinear1D([0], [0], 1, 1)
    net = compile_1d(line)
    assert line.n_pieces == 1 and size(net) == 2 == size(compile_1d(line, minimize=True))
    assert [net([x])[0] for x in (-5, 0, 5)] == [-5, 0, 5]
    # One ReLU makes a function that is constant on the left or on the right; the line is not.
    rng = np.random.default_rng(0)
    for w, b, c, d in rng.integers(-9, 10, (200, 4)):
        one = PiecewiseLinear1D.from_network(
            ReluNetwork.from_layers([([[w]], [b]), ([[c]], [d])]).as_fractions()
        )
        assert 0 in (one.left_slope, one.right_slope)
    # For p >= 2 the bound holds (see above), and a constant needs none.
    constant = compile_1d(PiecewiseLinear1D([0], [7], 0, 0))
    assert size(constant) == 0 and constant([3]) == [7]


def test_bad_input():
    with pytest.raises(TypeError, match="got list"):
        compile_1d([1, 2])
    many = random_function(np.random.default_rng(0), 60)
    with pytest.raises(ValueError, match=r"up to 32 kinks; got 59.*one ReLU more"):
        balancing_kinks(many)
    assert size(compile_1d(many)) in (59, 60)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_huge_and_tiny_numbers(unit):
    f = PiecewiseLinear1D(np.array([-1.0, 0.0, 2.0]) * unit, [3.0, 1.0, 2.0], -1 / unit, 0.0)
    net = compile_1d(f)
    x = np.linspace(-4, 4, 33) * unit
    np.testing.assert_allclose(net(x[:, None]).ravel(), f(x), rtol=1e-12)
