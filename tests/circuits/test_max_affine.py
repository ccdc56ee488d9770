"""Signed sums of maxima: few maps under each maximum, the promised depth, exact values."""

from fractions import Fraction
from itertools import product
from math import ceil, log2

import numpy as np
import pytest
from scipy.optimize import linprog

from pindown import ReluNetwork
from pindown.circuits._radon import expand, reduced_sets, without_dominated
from pindown.circuits.arithmetic import depth, size
from pindown.circuits.max_affine import MaxAffineSum, compile_max_affine
from pindown.circuits.piecewise_1d import PiecewiseLinear1D, compile_1d
from pindown.rational import null_vector, reduce_rows, solve
from tests.circuits.rationals import Evaluator


def fractions(rows):
    return [tuple(Fraction(int(v), 3) for v in row) for row in rows]


def random_sum(rng, n, terms, maps):
    return MaxAffineSum.of(
        [
            (int(rng.choice([-2, -1, 1, 3])), fractions(rng.integers(-4, 5, (maps, n + 1))))
            for _ in range(terms)
        ]
    )


def points(rng, n, count=12):
    return [[Fraction(int(v), 5) for v in row] for row in rng.integers(-40, 41, (count, n))]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_random_sums_are_compiled_exactly_at_the_promised_depth(n, seed):
    """Thirty functions each: with the other tests of this folder more than 1,000 cases."""
    rng = np.random.default_rng(100 * n + seed)
    for _ in range(30):
        f = random_sum(rng, n, terms=int(rng.integers(1, 4)), maps=int(rng.integers(1, n + 4)))
        net = compile_max_affine(f)
        assert depth(net) <= ceil(log2(n + 1)) + 1
        evaluate = Evaluator(net)
        for x in points(rng, n):
            assert evaluate(x)[0] == f.at(x)


@pytest.mark.parametrize("n", range(1, 8))
def test_depth_is_as_promised_and_reached(n):
    """The maximum of 0 and the coordinates has n + 1 maps and needs no reduction."""
    rows = [[0] * (n + 1), *([int(i == k) for i in range(n)] + [0] for k in range(n))]
    f = MaxAffineSum.of([(1, rows)])
    net = compile_max_affine(f)
    assert depth(net) == ceil(log2(n + 1)) + 1
    rng = np.random.default_rng(n)
    X = rng.normal(size=(200, n))
    np.testing.assert_allclose(net.to_network()(X).ravel(), np.maximum(0, X.max(axis=1)), atol=1e-12)


@pytest.mark.parametrize(("n", "maps"), [(1, 8), (2, 8), (3, 8), (2, 6), (4, 8)])
def test_reduction_is_an_identity_in_exact_arithmetic(n, maps):
    rng = np.random.default_rng(maps)
    for _ in range(5):
        rows = fractions(rng.integers(-9, 10, (maps, n + 1)))
        small = reduced_sets(rows, [(Fraction(1), tuple(range(maps)))])
        assert max(map(len, small)) <= n + 1
        for x in points(rng, n):
            values = [sum(g * t for g, t in zip(row, x, strict=False)) + row[-1] for row in rows]
            total = sum(c * max(values[i] for i in chosen) for chosen, c in small.items())
            assert total == max(values)


def test_one_step_of_the_reduction_handles_ties():
    rows = fractions([[3, 0], [3, 0], [3, -3]])  # parallel, two of them equal
    for sign, chosen in expand(rows, (0, 1, 2)):
        assert sign == 1 and len(chosen) == 2
    cross = fractions([[3, 0, 0], [-3, 0, 0], [0, 3, 0], [0, -3, 0]])  # kappa = 0: all meet in one point
    found = reduced_sets(cross, [(1, (0, 1, 2, 3))])
    for x in ([2, 1], [-1, 2], [0, -5], [0, 0]):
        values = [row[0] * x[0] + row[1] * x[1] for row in cross]
        assert sum(c * max(values[i] for i in chosen) for chosen, c in found.items()) == max(values)


def test_one_variable_gives_the_sizes_of_the_compiler_for_one_variable():
    rng = np.random.default_rng(1)
    for _ in range(20):
        f = random_sum(rng, 1, terms=3, maps=4)
        net = compile_max_affine(f)
        g = PiecewiseLinear1D.from_network(net)
        assert all(g.at(x[0]) == f.at(x) for x in points(rng, 1))
        # One ReLU for each kink, and two for the affine rest.
        assert size(net) <= g.n_pieces + 1 and size(compile_1d(g)) <= g.n_pieces


def test_floats_and_fractions_take_the_same_way():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(6, 3))
    f = MaxAffineSum.of([(1.0, rows), (-0.5, rows[:3] * 2)])
    net = compile_max_affine(f)
    assert isinstance(net, ReluNetwork) and net.depth == 3
    X = rng.normal(size=(10_000, 2)) * 3
    np.testing.assert_allclose(net(X).ravel(), f(X), atol=1e-12)
    values = X @ rows[:, :2].T + rows[:, 2]
    direct = values.max(axis=1) - 0.5 * (2 * values[:, :3]).max(axis=1)
    np.testing.assert_allclose(f(X), direct, atol=1e-12)


def test_difference_of_convex_functions():
    plus, minus = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]], [[1, 1, 0], [-1, -1, 0], [0, 0, 1]]
    f = MaxAffineSum.difference(plus, minus)
    net = compile_max_affine(f)
    for x, y in product(range(-3, 4), repeat=2):
        assert net([x, y])[0] == max(abs(x), abs(y)) - max(abs(x + y), 1)
    assert depth(net) == 3


def test_without_reduction_the_network_is_deeper_and_smaller():
    f = MaxAffineSum.of([(1, fractions(np.random.default_rng(3).integers(-9, 10, (7, 3))))])
    flat, deep = compile_max_affine(f), compile_max_affine(f, reduce=False)
    assert depth(flat) == 3 and depth(deep) == 4 and size(deep) < size(flat)
    flat, deep = Evaluator(flat), Evaluator(deep)
    assert all(flat(x) == deep(x) for x in points(np.random.default_rng(4), 2))


def test_terms_that_cancel():
    square = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]
    nothing = MaxAffineSum.of([(1, square), (-1, square)])
    net = compile_max_affine(nothing)
    assert size(net) == 0 and net([3, 4]) == [0]
    line = compile_max_affine(MaxAffineSum.of([(2, [[1, 3]])]))
    assert size(line) == 0 and line([5]) == [16]


@pytest.mark.parametrize("seed", range(10))
def test_only_what_is_below_the_others_is_left_out(seed):
    rng = np.random.default_rng(seed)
    rows = fractions(rng.integers(-2, 3, (8, 3)))
    kept = without_dominated(rows, tuple(range(8)))
    for i in range(8):
        others = [j for j in kept if j != i]
        # Independent route: the largest lead of map i over the others that are kept.
        gaps = np.array([[float(v) for v in rows[j]] for j in others]) - np.array(rows[i], float)
        found = linprog(
            [0, 0, -1],
            A_ub=np.column_stack([gaps[:, :2], np.ones(len(others))]),
            b_ub=-gaps[:, 2],
            bounds=[(None, None), (None, None), (None, 1)],
        )
        assert (found.x[2] > 1e-9) == (i in kept)


def test_elimination():
    rows = [[Fraction(v) for v in row] for row in ([2, 4, 6], [1, 2, 4])]
    assert reduce_rows(rows)[1] == [0, 2]
    c = null_vector(rows)
    assert any(c) and all(sum(a * b for a, b in zip(row, c, strict=True)) == 0 for row in rows)
    assert solve(rows, [Fraction(2), Fraction(1)]) == [1, 0, 0]
    assert solve([[Fraction(1)], [Fraction(1)]], [Fraction(1), Fraction(2)]) is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: MaxAffineSum.of([]), ValueError, "one or more maps"),
        (lambda: MaxAffineSum.of([(1, [])]), ValueError, "one or more maps"),
        (lambda: MaxAffineSum.of([(1, [[1]])]), ValueError, "n \\+ 1 >= 2"),
        (lambda: MaxAffineSum.of([(1, [[1, 2], [1, 2, 3]])]), ValueError, r"lengths \[2, 3\]"),
        (lambda: MaxAffineSum.of([(float("nan"), [[1, 2]])]), ValueError, "finite; got nan"),
        (lambda: MaxAffineSum.of([(1, [1, 2])]), TypeError, "a map is a row .* got 1"),
        (lambda: compile_max_affine("x"), TypeError, "got str"),
        (lambda: MaxAffineSum.of([(1, [[1, 2]])]).at([1, 2]), ValueError, "takes 1 inputs; got 2"),
        (
            lambda: random_sum(np.random.default_rng(0), 3, 1, 14).reduced(max_terms=5),
            ValueError,
            "more than max_terms=5 .* without the reduction",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
