"""The way back: networks and triangulations as functions, and round trips."""

from fractions import Fraction
from itertools import pairwise
from math import ceil, log2

import numpy as np
import pytest
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay

from pindown import ReluNetwork
from pindown.circuits.arithmetic import depth, network
from pindown.circuits.piecewise import compile_function, extract, from_triangulation
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.rational import RationalNetwork
from tests.circuits.rationals import Evaluator


def random_net(rng, widths):
    return ReluNetwork.from_layers(
        [
            (rng.integers(-3, 4, (b, a)).astype(float), rng.integers(-3, 4, b).astype(float))
            for a, b in pairwise(widths)
        ]
    )


def height(row, x):
    return sum(g * t for g, t in zip(row, x, strict=False)) + row[-1]


def points(rng, n, count=25, reach=2):
    return [[Fraction(int(v) * reach, 40) for v in row] for row in rng.integers(-40, 41, (count, n))]


@pytest.mark.parametrize("widths", [(1, 4, 3, 1), (2, 3, 1), (2, 3, 2, 1), (2, 4, 3, 1), (3, 3, 2, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_a_network_compiled_from_its_pieces_is_the_network(widths, seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng, widths)
    f = extract(net, (-2, 2))
    exact, form = Evaluator(net.as_fractions()), f.lattice()
    for x in points(rng, widths[0]):
        assert form.at(x) == exact(x)[0]
    deep = Evaluator(compile_function(f, shallow=False))
    for x in points(rng, widths[0], count=8):
        assert deep(x) == exact(x)
    if seed == 0:
        flat = compile_function(f)
        assert depth(flat) <= ceil(log2(widths[0] + 1)) + 1
        flat = Evaluator(flat)
        assert all(flat(x) == exact(x) for x in points(rng, widths[0], count=8))


@pytest.mark.parametrize("seed", range(4))
def test_pieces_are_those_of_the_fast_geometry(seed):
    net = random_net(np.random.default_rng(seed), (2, 4, 3, 1))
    f = extract(net, (-2, 2))
    cx = polyhedral_complex(net, (-2, 2))
    assert f.n_pieces == cx.n_pieces and len(f.maps) == cx.n_maps and len(f.cells) == cx.n_regions


def test_fractions_that_are_no_floats():
    rng = np.random.default_rng(0)
    net = RationalNetwork.from_layers(
        [
            ([[Fraction(int(v), 3) for v in row] for row in rng.integers(-5, 6, (b, a))],
             [Fraction(int(v), 7) for v in rng.integers(-5, 6, b)])
            for a, b in ((2, 3), (3, 2), (2, 1))
        ]
    )  # fmt: skip
    form = extract(net, (-2, 2)).lattice()
    assert all(form.at(x) == net(x)[0] for x in points(rng, 2, count=100))


def test_pieces_where_other_maps_cross_are_cut():
    """With the sets S_i of whole pieces, on which other maps may change order, the form is wrong."""
    rng = np.random.default_rng(59)
    vertices = rng.integers(-9, 10, (7, 2)).astype(float)
    simplices = Delaunay(vertices).simplices
    values = rng.integers(-5, 6, 7).astype(float)
    f = from_triangulation(vertices, simplices, values)
    uncut = []
    for i, corners in zip(f.map_of, f.vertices, strict=True):
        leads = [[height(row, x) - height(f.maps[i], x) for x in corners] for row in f.maps]
        uncut.append([j for j, lead in enumerate(leads) if min(lead) >= 0])
    X = rng.dirichlet(np.ones(7), 500) @ vertices
    heights = X @ np.array(f.maps, dtype=float)[:, :2].T + np.array(f.maps, dtype=float)[:, 2]
    whole = np.max([heights[:, group].min(axis=1) for group in uncut], axis=0)
    truth = LinearNDInterpolator(Delaunay(vertices), values)(X)
    np.testing.assert_allclose(f(X), truth, atol=1e-9)
    assert np.abs(whole - truth).max() > 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_values_on_a_triangulation(n):
    rng = np.random.default_rng(n)
    if n == 1:
        vertices = np.array([[-2.0], [0.0], [1.0], [3.0]])
        simplices = [[0, 1], [1, 2], [3, 2]]
    else:
        vertices = rng.integers(-9, 10, (8 - n, n)).astype(float)
        simplices = Delaunay(vertices).simplices
    values = rng.integers(-5, 6, len(vertices)).astype(float)
    f = from_triangulation(vertices, simplices, values)
    net = compile_function(f, shallow=False)
    for vertex, value in zip(vertices, values, strict=True):
        assert net([Fraction(v) for v in vertex]) == [Fraction(value)]
    weights = rng.dirichlet(np.ones(len(vertices)), 200)
    X = weights @ vertices
    if n == 1:
        expected = np.interp(X.ravel(), vertices.ravel(), values)
    else:
        expected = LinearNDInterpolator(Delaunay(vertices), values)(X)
    np.testing.assert_allclose(net.to_network()(X).ravel(), expected, atol=1e-8)


def test_shallow_network_of_a_triangulation():
    corners = [[0, 0], [1, 1], [-1, 1], [-1, -1], [1, -1]]
    sides = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]]
    net = compile_function(from_triangulation(corners, sides, [1, 0, 0, 0, 0]))
    assert depth(net) == 3 and net([0, 0]) == [1]
    for x, y in ((Fraction(1, 2), Fraction(1, 4)), (Fraction(-3, 4), 0), (1, -1)):
        assert net([x, y]) == [1 - max(abs(x), abs(y))]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: extract(random_net(np.random.default_rng(0), (2, 2)), (-1, 1)), "this one has 2"),
        (
            lambda: extract(random_net(np.random.default_rng(0), (2, 9, 1)), (-9, 9), max_cells=3),
            "max_cells=3",
        ),
        (
            lambda: extract(network([([[Fraction(1, 3**60)]], [1])], exact=True), (-1, 1)),
            "round it first",
        ),
        (lambda: from_triangulation([[0], [1]], [], [0, 1]), "0 simplices"),
        (lambda: from_triangulation([[0], [1]], [[0, 1]], [0]), "1 values"),
        (lambda: from_triangulation([[0], [1]], [[0, 0]], [0, 1]), "has 2 vertices"),
        (lambda: from_triangulation([[0], [1]], [[0, 2]], [0, 1]), "has 2 vertices"),
        (lambda: from_triangulation([[0, 0], [1, 1], [2, 2]], [[0, 1, 2]], [0, 0, 1]), "flat"),
        (lambda: from_triangulation([[0, 0], [1, 1], [2, 2]], [[0, 1, 2]], [0, 0, 0]), "flat"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
