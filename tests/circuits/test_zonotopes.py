"""Zonotopes against convex hulls, and the hard functions made from them against exact counts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from pindown.box import Box
from pindown.circuits import (
    composed_zigzags,
    is_extremal,
    sample_extremal,
    zonotope_family,
    zonotope_network,
    zonotope_vertices,
)
from pindown.geometry.counts import telgarsky, zonotope_pieces, zonotope_vertex_count
from pindown.geometry.exact.complex import exact_complex


def zigzag(peaks, height=1.0):
    return composed_zigzags([[float(t) for t in peaks]], float(height))


# Zigzags whose slopes are powers of two, so that float64 holds the family exactly.
PEAKS = {2: [0.5], 3: [0.25, 0.5], 4: [0.25, 0.5, 0.75]}
GENERATORS = {
    2: [[0, 1], [1, 0]],
    3: [[0, 1], [1, 0], [1, 1]],
    4: [[0.25, 0.5], [-0.5, 0], [0, -0.25], [-0.25, -0.25]],
}


def all_sums(B):
    return np.array(list(product([-1, 1], repeat=len(B)))) @ B


def rows(points):
    """Points as a set, to rounding."""
    return {tuple(row) for row in np.round(points, 9) + 0.0}


@pytest.mark.parametrize(("n", "m", "count"), [(2, 2, 4), (2, 4, 8), (3, 4, 14), (3, 5, 22)])
def test_printed_vertex_count_lacks_a_factor_of_two(n, m, count):
    B = sample_extremal(n, m, np.random.default_rng(0))
    hull = ConvexHull(all_sums(B))
    printed = count // 2
    assert len(hull.vertices) == count == zonotope_vertex_count(n, m) != printed
    assert len(zonotope_vertices(B)) == count


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_vertices_are_those_of_the_convex_hull_of_all_sums(n, seed):
    rng = np.random.default_rng(seed)
    B = sample_extremal(n, n + int(rng.integers(4)), rng)
    if seed % 2:
        B[-1] = -2 * B[0]  # parallel generators are one longer generator
    sums = all_sums(B)
    vertices = zonotope_vertices(B)
    assert rows(vertices) == rows(sums[ConvexHull(sums).vertices])
    assert len(vertices) == len(rows(vertices))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_extremal_means_as_many_vertices_as_possible(n, m):
    rng = np.random.default_rng(10 * n + m)
    for B in (sample_extremal(n, m, rng), rng.integers(-1, 2, (m, n)).astype(float)):
        vertices = zonotope_vertices(B)
        assert len(vertices) <= zonotope_vertex_count(n, m)
        assert is_extremal(B) == (len(vertices) == zonotope_vertex_count(n, m))


def test_plane_vertices_go_around():
    B = np.array([[1, 0], [0.3, -2], [0, 0], [-2, 0], [-0.6, 4], [1, 1]])
    vertices = zonotope_vertices(B)
    steps = np.roll(vertices, -1, axis=0) - vertices
    turns = np.array(
        [np.linalg.det([a, b]) for a, b in zip(steps, np.roll(steps, -1, axis=0), strict=True)]
    )
    assert len(vertices) == 6 and np.all(turns > 0)
    assert rows(vertices) == rows(-vertices)


def test_generators_of_length_zero():
    assert zonotope_vertices([[0, 0]]).tolist() == [[0, 0]]
    assert zonotope_vertices(np.zeros((2, 3))).tolist() == [[0, 0, 0]]
    assert rows(zonotope_vertices([[0, 0, 0], [1, 2, 3]])) == rows([[1, 2, 3], [-1, -2, -3]])


@pytest.mark.parametrize("n", [2, 3])
def test_network_is_the_support_function(n):
    rng = np.random.default_rng(n)
    B = sample_extremal(n, 4, rng)
    net, X = zonotope_network(B), rng.standard_normal((100, n))
    np.testing.assert_allclose(net(X).ravel(), np.abs(X @ B.T).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(net(X).ravel(), (X @ zonotope_vertices(B).T).max(axis=1), rtol=1e-12)
    assert net.hidden_widths == (8,)
    assert exact_complex(net, Box.cube(n, -1, 1)).n_pieces == zonotope_vertex_count(n, 4)


@pytest.mark.parametrize(
    ("m", "w", "k", "count"), [(2, 2, 2, 17), (3, 2, 1, 12), (3, 2, 2, 25), (4, 3, 2, 72), (3, 3, 2, 54)]
)
def test_printed_piece_counts_of_the_family_are_wrong(m, w, k, count):
    B = np.array(GENERATORS[m], dtype=float)
    net = zonotope_family([PEAKS[w]] * k, B)
    assert net.hidden_widths == (2 * m, *[w] * k) and net.size == 2 * m + w * k
    # gamma >= 1.5 outside the box: every piece is seen.
    reach = 1.5 / np.abs(np.linalg.eigvalsh(B.T @ B)[0]) ** 0.5
    found = exact_complex(net, Box.cube(2, -reach, reach))
    printed = {(m - 1) * w**k, m * w**k}
    assert found.n_pieces == count == zonotope_pieces(2, k, w, m)
    assert count not in printed


@pytest.mark.parametrize(
    ("n", "m", "w", "k"), [(1, 1, 2, 2), (2, 1, 2, 2), (1, 1, 3, 2), (3, 2, 2, 2), (3, 3, 2, 1)]
)
def test_family_in_one_and_three_dimensions(n, m, w, k):
    net = zonotope_family([PEAKS[w]] * k, np.eye(m, n))
    assert exact_complex(net, Box.cube(n, -2, 2)).n_pieces == zonotope_pieces(n, k, w, m)


def test_family_is_the_zigzag_of_the_norm():
    rng = np.random.default_rng(0)
    peaks, B = [[0.2, 0.7], [0.5, 0.6]], rng.standard_normal((3, 2))
    X = rng.uniform(-1, 1, (200, 2))
    gamma = np.abs(X @ B.T).sum(axis=1, keepdims=True)
    expected = zigzag(peaks[1])(zigzag(peaks[0])(gamma))
    np.testing.assert_allclose(zonotope_family(peaks, B)(X), expected, atol=1e-12)


@pytest.mark.parametrize("w", [2, 3, 4])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_zigzags_have_a_power_of_pieces(w, k):
    net = zigzag(PEAKS[w])
    for _ in range(k - 1):
        net = zigzag(PEAKS[w]) @ net
    on_interval = exact_complex(net, ([0], [1]))
    assert on_interval.n_pieces == telgarsky(k, w) == w**k
    everywhere = exact_complex(net, ([-2], [3]))
    assert everywhere.n_pieces == w**k + (2 if k >= 2 and w % 2 == 0 else 1)


def test_zigzag_goes_up_and_down():
    values = zigzag([1, 3, 4], 8)(np.array([[-5.0], [0], [1], [2], [3], [4], [8], [12]])).ravel()
    assert values.tolist() == [0, 0, 8, 4, 0, 8, 0, -8]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zonotope_network([1.0, 2.0]), "one vector in each row"),
        (lambda: zonotope_vertices([[1.0, np.nan]]), "NaN or infinity"),
        (lambda: is_extremal(np.zeros((0, 2))), "one vector in each row"),
        (lambda: sample_extremal(0, 3, np.random.default_rng(0)), "n must be an integer of at least 1"),
        (lambda: zonotope_family([], np.eye(2)), "one or more zigzags"),
        (lambda: zonotope_family([[0.5], [0.3, 0.6]], np.eye(2)), "equal length"),
    ],
)
def test_bad_zonotopes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
