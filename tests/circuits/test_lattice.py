"""Maxima of minima, compiled both ways."""

from fractions import Fraction
from math import ceil, log2

import numpy as np
import pytest

from pindown.circuits.arithmetic import depth, size
from pindown.circuits.lattice import LatticeForm, compile_lattice
from pindown.circuits.piecewise import compile_function
from tests.circuits.rationals import Evaluator


def random_form(rng, n, maps, groups):
    rows = [[Fraction(int(v), 2) for v in row] for row in rng.integers(-6, 7, (maps, n + 1))]
    sets = [rng.choice(maps, int(rng.integers(1, maps)), replace=False).tolist() for _ in range(groups)]
    return LatticeForm.of(rows, sets)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_both_ways_are_exact(n):
    rng = np.random.default_rng(n)
    for _ in range(12):
        f = random_form(rng, n, maps=6, groups=4)
        flat, deep = compile_lattice(f), compile_lattice(f, shallow=False)
        assert depth(flat) <= ceil(log2(n + 1)) + 1
        longest = max(len(group) for group in f.groups)
        assert depth(deep) == ceil(log2(len(f.groups))) + ceil(log2(longest)) + 1
        flat, deep = Evaluator(flat), Evaluator(deep)
        for x in [[Fraction(int(v), 5) for v in row] for row in rng.integers(-40, 41, (12, n))]:
            values = [sum(g * t for g, t in zip(row, x, strict=False)) + row[-1] for row in f.maps]
            expected = max(min(values[j] for j in group) for group in f.groups)
            assert flat(x) == deep(x) == [expected] and f.at(x) == expected


def test_six_planes():
    planes = [[1, 0, 0], [0, 1, 0], [-1, -1, 1], [1, 1, 1], [-1, 0, 2], [0, -1, 2]]
    f = LatticeForm.of(planes, [[0, 4], [1, 5], [2, 3]])
    net = compile_lattice(f)
    X = np.random.default_rng(0).uniform(-4, 4, (10_000, 2))
    np.testing.assert_allclose(net.to_network()(X).ravel(), f(X), atol=1e-11)
    assert depth(net) == 3


def test_a_group_that_holds_another_adds_nothing():
    f = LatticeForm.of([[1, 0], [-1, 0], [0, 1]], [[0, 1, 2], [0, 1], [2]])
    assert f.groups == ((0, 1), (2,))


def test_floats():
    f = LatticeForm.of([[1.0, 0.0], [-1.0, 2.0], [0.0, 0.0]], [[0, 1], [2]])
    assert not f.exact
    for shallow in (True, False):
        net = compile_function(f, shallow=shallow)
        assert net([[0.5], [1.0], [7.0]]).ravel() == pytest.approx([0.5, 1.0, 0.0])
    assert size(compile_lattice(f)) <= 4


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LatticeForm.of([], [[0]]), ValueError, "one length"),
        (lambda: LatticeForm.of([[1, 2], [1]], [[0]]), ValueError, r"lengths \[1, 2\]"),
        (lambda: LatticeForm.of([[1, 2]], []), ValueError, "one or more"),
        (lambda: LatticeForm.of([[1, 2]], [[]]), ValueError, "non-empty"),
        (lambda: LatticeForm.of([[1, 2]], [[1]]), ValueError, "indices below 1"),
        (lambda: compile_lattice(3), TypeError, "got int"),
        (lambda: compile_function(3), TypeError, "got int"),
        (
            lambda: random_form(np.random.default_rng(0), 2, 12, 20).as_max_affine(max_terms=9),
            ValueError,
            "more than max_terms=9 .* shallow=False",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
