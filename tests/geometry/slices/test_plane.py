"""Restriction to planes: the same function and patterns as the network itself, and nothing missed."""

import gzip
import itertools
import os
import time
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.complex.counting import count_regions
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.folds.fold_set import fold_set
from pindown.geometry.slices.plane import on_plane, plane_through

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[4] / "shared"))
MNIST = SHARED / "models" / "mnist_256x4.onnx.gz"


def random_net(widths, seed=0):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(widths)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairs]
    )


def interior_points(cells):
    """A point strictly inside each cell: the mean of its corners."""
    sums = np.add.reduceat(cells.cell_vertices, cells.offsets[:-1], axis=0)
    return sums / np.diff(cells.offsets)[:, None]


def check_agrees_with_network(part, tol=1e-9):
    """Patterns, values and maps of the slice are those of the network at the lifted points."""
    cells = part.complex
    assert cells.volumes.sum() == pytest.approx(np.prod(part.box.upper - part.box.lower))
    some = np.arange(0, part.n_regions, max(1, part.n_regions // 2000))
    st = interior_points(cells)[some]
    X = part.lift(st)
    wide = cells.volumes[some] > 1e-8 * cells.volumes.max()  # far enough from folds for float64
    assert (part.net.pattern(X)[wide] == part.patterns[some][wide]).all()
    outputs = part.net(X)
    scale = np.abs(outputs).max()
    in_cells = np.einsum("nkd,nd->nk", cells.A[some], st) + cells.c[some]
    assert np.abs(in_cells - outputs).max() <= tol * scale
    assert np.allclose(part(st), outputs, atol=tol * scale)


@pytest.mark.parametrize("d", [2, 3, 5, 20])
def test_a_slice_is_the_network_on_the_plane(d):
    net = random_net((d, 12, 10, 3), seed=d)
    rng = np.random.default_rng(d)
    part = on_plane(net, *rng.standard_normal((3, d)), extent=((-2, 1), (0, 3)))
    assert part.complete and part.n_regions == len(part.regions) > 10
    check_agrees_with_network(part)


def test_every_cell_on_the_plane_is_found():
    # Independent route: patterns on a fine grid of the plane, evaluated by the whole network.
    net = random_net((4, 6, 5, 1), seed=3)
    rng = np.random.default_rng(3)
    part = on_plane(net, *rng.standard_normal((3, 4)))
    s, t = (axis.ravel() for axis in np.meshgrid(*2 * [np.linspace(-1, 1, 701)]))
    seen = {row.tobytes() for row in net.pattern(part.lift(np.stack([s, t], axis=1)))}
    listed = {row.tobytes() for row in part.patterns}
    assert seen <= listed and len(listed) == part.n_regions
    missing = [i for i, row in enumerate(part.patterns) if row.tobytes() not in seen]
    assert all(part.complex.volumes[i] < 100 * (2 / 700) ** 2 for i in missing)


def test_the_coordinate_plane_of_a_plane_network_is_the_network():
    net = random_net((2, 9, 7, 2), seed=1)
    part = on_plane(net, [0, 0], [1, 0], [0, 1], extent=((-1, 2), (-3, 1)))
    cells = polyhedral_complex(net, Box([-1, -3], [2, 1]))
    assert part.n_regions == cells.n_regions and part.n_pieces == cells.n_pieces
    assert sorted(part.complex.volumes) == pytest.approx(sorted(cells.volumes))


def test_other_coordinates_of_the_same_rectangle_give_the_same_cells():
    net = random_net((6, 10, 8, 1), seed=2)
    rng = np.random.default_rng(0)
    o, u, v = rng.standard_normal((3, 6))
    part = on_plane(net, o, u, v, extent=((-1, 1), (-2, 2)))
    scaled = on_plane(net, o + 3 * v, 5 * v, -0.5 * u, extent=((-1, -0.2), (-2, 2)))
    assert scaled.n_regions == part.n_regions
    assert sorted(2.5 * scaled.complex.volumes) == pytest.approx(sorted(part.complex.volumes))


def test_maps_in_the_inputs_and_in_the_coordinates_agree():
    net = random_net((7, 10, 8, 2), seed=4)
    part = on_plane(net, *np.random.default_rng(4).standard_normal((3, 7)))
    for i in range(0, part.n_regions, 7):
        A, c = part.input_map(i)
        assert np.allclose(A @ np.stack([part.u, part.v], axis=1), part.complex.A[i])
        assert np.allclose(A @ part.origin + c, part.complex.c[i])
        assert np.array_equal(part.regions[i].pattern, part.patterns[i])


def test_points_go_to_the_plane_and_back():
    net = random_net((9, 4, 1))
    rng = np.random.default_rng(0)
    part = on_plane(net, *rng.standard_normal((3, 9)))
    st = rng.standard_normal((20, 2))
    assert np.allclose(part.project(part.lift(st)), st)
    assert np.allclose(part.distance(part.lift(st)), 0.0, atol=1e-12)
    normal = np.linalg.svd(np.stack([part.u, part.v]))[2][-1]
    off = part.lift(st) + 2.5 * normal
    assert np.allclose(part.project(off), st) and np.allclose(part.distance(off), 2.5)
    assert part.lift(st[0]).shape == (9,) and part.project(off[0]).shape == (2,)
    assert part(st[0]).shape == (1,) and part(st).shape == (20, 1)


def test_the_plane_through_three_points_shows_them():
    net = random_net((30, 12, 8, 3), seed=5)
    points = np.random.default_rng(5).standard_normal((3, 30))
    part = plane_through(net, *points, margin=0.3)
    assert np.allclose(part.lift(part.marks), points)
    assert part.box.contains(part.marks).all()
    lengths = [np.linalg.norm(a - b) for a, b in itertools.combinations(points, 2)]
    shown = [np.linalg.norm(a - b) for a, b in itertools.combinations(part.marks, 2)]
    assert shown == pytest.approx(lengths)
    assert np.linalg.norm(part.u) == pytest.approx(1) and part.u @ part.v == pytest.approx(0)
    sides = part.box.upper - part.box.lower
    assert sides[0] == pytest.approx(sides[1])
    check_agrees_with_network(part)


def test_many_planes_are_each_like_one():
    net = random_net((5, 8, 6, 2), seed=6)
    origins, us, vs = np.random.default_rng(6).standard_normal((3, 4, 5))
    parts = on_plane(net, origins, us, vs, n_jobs=2)
    alone = [on_plane(net, *plane) for plane in zip(origins, us, vs, strict=True)]
    assert [part.n_regions for part in parts] == [part.n_regions for part in alone]
    assert all(np.array_equal(a.patterns, b.patterns) for a, b in zip(parts, alone, strict=True))
    shifted = on_plane(net, origins, us[0], vs[:1])  # one direction serves for all
    assert len(shifted) == 4 and shifted[0].n_regions == alone[0].n_regions
    assert len(on_plane(net, origins[:1], us[0], vs[0])) == 1


def test_a_convolutional_network_is_restricted_through_its_sparse_first_layer():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    W = sp.random_array((20, 50), density=0.1, rng=rng, format="csr")
    sparse = ReluNetwork.from_layers([(W, np.zeros(20)), (rng.standard_normal((1, 20)), [0])])
    full = ReluNetwork.from_layers([(W.toarray(), np.zeros(20)), sparse.layers[1]])
    plane = rng.standard_normal((3, 50))
    assert on_plane(sparse, *plane).n_regions == on_plane(full, *plane).n_regions > 5


def test_an_affine_network_has_one_cell():
    part = on_plane(random_net((4, 2)), [0] * 4, [1, 0, 0, 0], [0, 1, 0, 0])
    assert part.n_regions == 1 and part.complete
    check_agrees_with_network(part)


def test_certified_slices_agree():
    net = random_net((8, 10, 8, 1), seed=7)
    plane = np.random.default_rng(7).standard_normal((3, 8))
    part = on_plane(net, *plane, certified=True)
    assert part.complex.certified and part.n_regions == on_plane(net, *plane).n_regions


def test_folds_of_a_slice_lie_on_zero_sets_of_the_whole_network():
    net = random_net((15, 12, 10, 1), seed=8)
    part = plane_through(net, *np.random.default_rng(8).standard_normal((3, 15)))
    folds = fold_set(part.complex)
    z = net.preactivations(part.lift(folds.centres))
    on_fold = np.abs(z[np.arange(len(folds)), folds.units])
    assert len(folds) > 50 and on_fold.max() <= 1e-9 * np.abs(z).max()


def test_budgets_end_with_what_was_found():
    net = random_net((10, 60, 60, 1), seed=9)
    plane = np.random.default_rng(9).standard_normal((3, 10))
    empty = on_plane(net, *plane, budget=0)
    assert empty.n_regions == 0 and not empty.complete
    few = on_plane(net, *plane, max_cells=5)
    assert few.n_regions >= 5 and not few.complete
    several = on_plane(net, np.zeros((3, 10)), *plane[1:], budget=0)
    assert [part.complete for part in several] == [False] * 3


NET = random_net((4, 3, 1))
E1, E2 = np.eye(4)[:2]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.zeros(3), E1, E2), {}, r"takes inputs of shape \(n, 4\)"),
        ((np.zeros(4), E1, np.full(4, np.nan)), {}, "inputs must be finite"),
        ((np.zeros(4), E1, 0 * E2), {}, "the direction v is zero; a plane needs"),
        ((np.zeros(4), E1, -3 * E1), {}, "u and v are parallel and span a line"),
        ((np.zeros(4), [E1, E1], [E2, 2 * E1]), {}, "u and v are parallel for plane 1"),
        ((np.zeros((3, 4)), [E1, E1], E2), {}, "as many rows each, or one; got 3, 2 and 1"),
        ((np.zeros(4), E1, E2), {"extent": (-1, 1)}, "extent must be"),
        ((np.zeros(4), E1, E2), {"extent": ((0, 0), (0, 1))}, "the smaller ones first"),
        ((np.zeros(4), E1, E2), {"extent": ((0, np.inf), (0, 1))}, "finite numbers"),
        ((np.zeros(4), E1, E2), {"budget": -1}, "budget must be a number of at least 0"),
        ((np.zeros(4), E1, E2), {"max_cells": 0}, "max_cells must be a number of at least 1"),
        ((np.zeros((2, 4)), E1, E2), {"n_jobs": 0}, "n_jobs must be a number of threads"),
    ],
)
def test_what_spans_no_plane_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        on_plane(NET, *arguments, **options)


@pytest.mark.parametrize(
    "points",
    [
        (np.zeros(4), E1, 2 * E1),  # on one line
        (E1, E1, E2),  # twice the same
        (E1, E2, E1),
        (np.zeros(4), 1e8 * E1, 1e8 * E1 + 1e-6 * E2),  # on one line to rounding
    ],
)
def test_three_points_on_a_line_are_refused(points):
    with pytest.raises(ValueError, match="the three points lie on one line"):
        plane_through(NET, *points)


def test_through_refuses_batches_and_margins_that_are_none():
    with pytest.raises(ValueError, match="must be one input of 4 numbers each"):
        plane_through(NET, np.zeros((2, 4)), E1, E2)
    for margin in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="margin must be a finite number of at least 0"):
            plane_through(NET, np.zeros(4), E1, E2, margin=margin)
    with pytest.raises(ValueError, match=r"shape \(n, 2\) or \(2,\)"):
        plane_through(NET, np.zeros(4), E1, E2).lift([1.0, 2.0, 3.0])


@pytest.mark.skipif(not MNIST.exists(), reason="mnist_256x4 is not here")
def test_a_plane_through_three_digits():
    from pindown.io import load

    net = load(MNIST).relu_network()
    with gzip.open(SHARED / "data" / "mnist" / "t10k-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, count=3 * 784, offset=16).reshape(3, 784) / 255
    start = time.process_time()
    part = plane_through(net, *images, margin=0.1)
    seconds = time.process_time() - start
    assert part.complete and part.n_regions > 10_000
    assert seconds < 20  # about one warm; compilation included when it is the first use
    check_agrees_with_network(part, tol=1e-7)
    assert count_regions(part.restricted, part.box) == part.n_regions
