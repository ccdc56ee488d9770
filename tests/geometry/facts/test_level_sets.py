"""Level sets: values at their corners, sizes by sign changes on lines, volumes by Monte Carlo."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.extrema import output_range
from pindown.geometry.facts.level_sets import level_set, volume_above
from pindown.geometry.slices.segment import along_segment
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network
from tests.geometry.partial import first_cells


def one_norm(d):
    eye = np.eye(d)
    return ReluNetwork.from_layers(
        [(np.vstack([eye, -eye]), np.zeros(2 * d)), (np.ones((1, 2 * d)), [0])]
    )


def middle_level(net, box):
    found = output_range(net, box)
    return 0.45 * found.minima[0].value + 0.55 * found.maxima[0].value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_corners_and_centres_are_at_the_level(kind, d):
    net, box = degenerate_network(kind, d, np.random.default_rng(d), widths=(6, 5)), cube(d)
    level = middle_level(net, box)
    found = level_set(polyhedral_complex(net, box, certified=True), level=level)
    assert len(found) and np.abs(net(found.corners)[:, 0] - level).max() < 1e-9
    assert box.contains(np.clip(found.corners, -1, 1)).all() and np.abs(found.corners).max() < 1 + 1e-12
    middles = np.array([found.part(i).mean(axis=0) for i in range(len(found))])
    assert np.abs(net(middles)[:, 0] - level).max() < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_crossings_of_random_lines_agree(seed):
    # On a line, sign changes of f - t between exact knots; in the plane, segments hit by the line.
    rng = np.random.default_rng(seed)
    net, box = random_network(rng, 2, (8, 8)), cube(2)
    level = middle_level(net, box)
    segments = level_set(net, box, level=level).segments
    for _ in range(50):
        a, b = rng.uniform(-1, 1, (2, 2))
        values = along_segment(net, a, b).values[:, 0] - level
        crossings = int(np.sum(values[1:] * values[:-1] < 0))
        assert crossings == count_hits(segments, a, b)


def count_hits(segments, a, b):
    def side(p, q, x):
        return np.sign((q - p)[..., 0] * (x - p)[..., 1] - (q - p)[..., 1] * (x - p)[..., 0])

    p, q = segments[:, 0], segments[:, 1]
    return int(np.sum((side(a, b, p) != side(a, b, q)) & (side(p, q, a) != side(p, q, b))))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_one_norm(d):
    # 2 points, a diamond with sides of length sqrt(2), an octahedron with 8 triangles of area sqrt(3)/2.
    found = level_set(one_norm(d), (-2, 2), level=1)
    assert found.size == pytest.approx({1: 2, 2: 4 * np.sqrt(2), 3: 4 * np.sqrt(3)}[d])
    assert len(found) == 2**d and found.exact and not len(found.flat)
    assert volume_above(one_norm(d), (-2, 2), level=1).volume == pytest.approx(
        4**d - {1: 2, 2: 2, 3: 4 / 3}[d]
    )


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(2))
def test_volume_above_a_level_by_monte_carlo(d, seed):
    rng = np.random.default_rng(seed)
    net, box = random_network(rng, d, (6, 6)), Box.cube(d, -1, 1)
    level = middle_level(net, box)
    found = volume_above(net, box, level=level)
    share = found.share
    assert found.volume == pytest.approx(share * 2**d) and found.exact
    n = 100_000
    hits = np.mean(net(box.sample(n, rng))[:, 0] >= level)
    assert abs(hits - share) < 4 * np.sqrt(share * (1 - share) / n) + 1e-12
    below = volume_above(-net, box, level=-level).share
    assert share + below == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_contour_lines_enclose_what_is_above(seed):
    # Lines end on the boundary of the box or are closed, and have the larger values on their left.
    rng = np.random.default_rng(seed)
    net, box = random_network(rng, 2, (10, 10)), cube(2)
    found = level_set(net, box, level=middle_level(net, box))
    assert sum(len(chain) - 1 for chain in found.chains) == len(found)
    for chain in found.chains:
        ends = chain[[0, -1]]
        assert np.array_equal(*ends) or np.all(np.isclose(np.abs(ends).max(axis=1), 1))
        middle, step = (chain[1:] + chain[:-1]) / 2, np.diff(chain, axis=0)
        left = np.stack([-step[:, 1], step[:, 0]], axis=1)
        left /= np.linalg.norm(left, axis=1, keepdims=True)
        assert np.min(net(middle + 1e-9 * left) - net(middle - 1e-9 * left)) > -1e-12


@pytest.mark.parametrize("seed", range(3))
def test_area_above_by_green(seed):
    # The area inside a closed contour around a hill, by the shoelace formula.
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((9, 2)), -0.5 * rng.random(9)
    net = ReluNetwork.from_layers([(np.vstack([W, -W]), np.tile(b, 2)), (-np.ones((1, 18)), [0])])
    found = level_set(net, (-20, 20), level=-5)
    (ring,) = found.chains
    x, y = ring.T
    area = (x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2
    assert area == pytest.approx(volume_above(net, (-20, 20), level=-5).volume, rel=1e-9) and area > 0


def test_level_along_edges_and_through_vertices_comes_once():
    net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, -1.0]], [0])])
    diagonal = level_set(net, (-1, 1), level=0)  # the diagonal for x, y > 0, and a flat quarter
    assert len(diagonal.flat) == 1 and diagonal.size == pytest.approx(np.sqrt(2) + 2)
    ridge = ReluNetwork.from_layers([([[1.0, 0.0], [-1.0, 0.0]], [0, 0]), ([[-1.0, -1.0]], [0])])
    top = level_set(ridge, (-1, 1), level=0)  # the crest, which both sides share and neither exceeds
    assert len(top) == 1 and top.size == pytest.approx(2)
    assert len(level_set(one_norm(2), (-1, 1), level=0)) == 0  # a single point is not listed
    assert len(level_set(one_norm(2), (-1, 1), level=9)) == 0
    assert level_set(one_norm(2), (-1, 1), level=9).chains == ()


def test_flat_level_in_one_and_three_dimensions():
    relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    found = level_set(relu, (-1, 1), level=0)
    assert len(found.flat) == 1 and found.corners.tolist() == [[0.0]]
    relu = ReluNetwork.from_layers([([[1.0, 0, 0]], [0]), ([[1.0]], [0])])
    found = level_set(relu, (-1, 1), level=0)
    assert len(found.flat) == 1 and found.sizes.tolist() == pytest.approx([4])
    assert volume_above(relu, (-1, 1), level=0).volume == pytest.approx(8)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_levels_that_graze_a_vertex(d):
    # Corners cut off a millionth of a millionth deep: nothing breaks, nothing is lost.
    net = random_network(np.random.default_rng(6), d, (5, 4))
    cx = polyhedral_complex(net, cube(d))
    plateaus = cx.c[np.abs(cx.A).max(axis=(1, 2)) < 1e-9, 0]  # at their height the volume jumps
    for value in net(cx.vertices[:: max(1, len(cx.vertices) // 10)])[:, 0]:
        if np.any(np.abs(plateaus - value) < 1e-6):
            continue
        at = volume_above(cx, level=value).share
        for shift in (1e-13, -3e-12, -1e-11, 1e-9):
            assert volume_above(cx, level=value + shift).share == pytest.approx(at, abs=1e-6)


def test_partial_searches_and_prints():
    net = random_network(np.random.default_rng(0), 2, (10, 10))
    whole = polyhedral_complex(net, (-1, 1))
    level = middle_level(net, cube(2))
    part = first_cells(whole, len(whole) // 2)
    assert level_set(part, level=level).size <= level_set(whole, level=level).size
    some, all_of_it = volume_above(part, level=level), volume_above(whole, level=level)
    assert some.volume <= all_of_it.volume + 1e-12 and "not complete" in repr(some)
    assert "not complete" in repr(level_set(part, level=level))
    nothing = volume_above(net, (-1, 1), budget=0)
    assert len(level_set(net, (-1, 1), budget=0)) == 0
    assert nothing.volume == 0 and not nothing.exact
    flat = level_set(ReluNetwork.from_layers([([[0.0, 0.0]], [1])]), (0, 1), level=1)
    assert repr(flat) == "LevelSet(output 0 = 1: 0 segments, 0 long, 1 flat cell)"


def test_bad_input():
    net = random_network(np.random.default_rng(0), 4, (3,))
    with pytest.raises(ValueError, match="1 to 3 inputs; the network takes 4"):
        level_set(net, (-1, 1))
    line = random_network(np.random.default_rng(0), 1, (3,))
    with pytest.raises(ValueError, match="finite number; got nan"):
        level_set(line, (-1, 1), level=float("nan"))
    with pytest.raises(ValueError, match="finite number; got inf"):
        volume_above(line, (-1, 1), level=float("inf"))
    for name in ("segments", "chains"):
        with pytest.raises(ValueError, match="two inputs; the network takes 1"):
            getattr(level_set(line, (-1, 1)), name)
