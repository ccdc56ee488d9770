"""Extreme scales, folds that nearly coincide, and limits: where float64 is hardest pressed."""

import pickle

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.complex.counting import region_count
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.nearness import ASLEEP, layer_scales, leaves_float64
from pindown.geometry.regions._polar import deep_point
from tests.geometry.oracles import cube, degenerate_network, random_network, reference_network


def seen_on(net, box):
    """The network of the cube [-1, 1]^d moved to another box, but for rounding."""
    (W, b), *rest = net.layers
    W = W / ((box.upper - box.lower) / 2)
    return ReluNetwork.from_layers([(W, b - W @ box.center), *rest])


def nearly_tied(rng, d):
    """Folds that coincide, are parallel or meet in one point, but for a small number."""
    W, b, eps = rng.normal(size=(5, d)), rng.normal(size=5) / 3, 10.0 ** -rng.integers(6, 17)
    kind = rng.integers(3)
    if kind == 0:
        W[1], b[1] = W[0], b[0] + eps
    elif kind == 1:
        W[1], b[1] = W[0] + eps * rng.normal(size=d), b[0]
    else:
        b = -W @ rng.uniform(-0.5, 0.5, d) + eps * rng.normal(size=5) * (rng.random(5) < 0.5)
    W2, b2 = rng.normal(size=(3, 5)), rng.normal(size=3) * rng.integers(0, 2)
    return ReluNetwork.from_layers([(W, b), (W2, b2), (rng.normal(size=(2, 3)), [0, 1])])


def check_certified(net, box):
    """Counts, patterns, neighbours and, in the plane, Euler's formula, against rationals."""
    truth = exact_complex(net, box)
    result = region_count(net, box, certified=True)
    assert (result.n_regions, result.growth) == (truth.n_regions, truth.growth)
    cx = polyhedral_complex(net, box, certified=True)
    assert {p.tobytes() for p in cx.patterns} == {p.tobytes() for p in truth.patterns}
    pairs = {frozenset((cx.patterns[i].tobytes(), cx.patterns[j].tobytes())) for i, j in cx.neighbours}
    assert pairs == {
        frozenset((truth.patterns[i].tobytes(), truth.patterns[j].tobytes()))
        for i, j in truth.neighbours
    }
    assert len(pairs) == len(cx.neighbours) and (cx.volumes >= 0).all()
    if box.dim == 2 and cx.n_regions > 1:
        assert len(cx.vertices) - len(cx.edges) + cx.n_regions == 1


@pytest.mark.parametrize("scale", [1e-322, 1e-310, 1e-170, 1e-12, 1e12, 1e150, 1e300, 1e307])
@pytest.mark.parametrize("d", [2, 3])
def test_scales_of_weights(d, scale):
    rng = np.random.default_rng(1)
    for widths in [(4,), (4, 3)]:
        net = random_network(rng, d, widths)
        (W, b), *rest = net.layers
        scaled = ReluNetwork.from_layers([(W * scale, b * scale), *((V, c * scale) for V, c in rest)])
        check_certified(scaled, cube(d))
        if 1e-300 < scale < 1e200:
            assert region_count(scaled, cube(d)).n_regions == exact_complex(scaled, cube(d)).n_regions


def test_overflow_is_left_to_exact_arithmetic():
    # Terms of 1.5e308 add up to 0, but their partial sums overflow.
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    net = ReluNetwork.from_layers(
        [(W, [0, 0, 0]), (1.5e308 * np.array([[1.0, 1.0, -1.0]]), [-1.0]), ([[1.0]], [0])]
    )
    check_certified(net, Box([0.25, 0.25], [1, 1]))
    threads = region_count(net, Box([0.25, 0.25], [1, 1]), certified=True, n_jobs=3)
    assert (threads.n_regions, threads.n_exact) == (1, 1)


BOXES = {
    "far": ([1e6, 1e6], [1e6 + 1, 1e6 + 1]),
    "far and tiny": ([1e6, 1e6], [1e6 + 1e-9, 1e6 + 1e-9]),
    "tiny": ([0.1, 0.1], [0.1 + 1e-9, 0.1 + 1e-9]),
    "thin": ([-1e-6, -1e6], [1e-6, 1e6]),
    "huge": ([-1e150, -1e150], [1e150, 1e150]),
    "nearly nothing": ([0, 0], [1e-150, 1e-150]),
}


@pytest.mark.parametrize("kind", ["integer", "zero_bias"])
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_boxes_of_all_sizes(box, kind):
    domain = Box(*box)
    for seed in range(3):
        net = degenerate_network(kind, 2, np.random.default_rng(seed), (4, 3))
        check_certified(seen_on(net, domain), domain)


@pytest.mark.parametrize("d", [2, 3])
def test_near_ties_certified(d):
    rng = np.random.default_rng(d)
    for _ in range(25):
        check_certified(nearly_tied(rng, d), cube(d))


def test_near_ties_fast():
    """Cells may be too thin to be seen, but the rest must fit together."""
    rng = np.random.default_rng(7)
    for i in range(120):
        d = 2 + i % 2
        cx = polyhedral_complex(nearly_tied(rng, d), cube(d))
        assert abs(cx.volumes.sum() / 2**d - 1) < 1e-6
        a, b = cx.neighbours.T
        graph = coo_array((np.ones(len(a)), (a, b)), shape=(cx.n_regions, cx.n_regions))
        assert cx.complete and connected_components(graph, directed=False)[0] == 1


def test_neighbours_in_a_box_of_unequal_sides():
    # The two units change together at x = 0 only there, so facets are matched by where they are.
    box = Box([-1e-6, -1e6], [1e-6, 1e6])
    net = ReluNetwork.from_layers(
        [([[1e6, 0.0], [0.0, 1e-6]], [0, 0]), ([[1.0, 0], [-1.0, 0]], [0, 0]), ([[1.0, 1.0]], [0])]
    )
    check_certified(net, box)
    cx = polyhedral_complex(net, box)
    assert (cx.n_regions, len(cx.neighbours)) == (4, 4)


def test_points_outside_the_box_are_in_no_cell():
    net = reference_network((2, 16, 16, 1), 0)
    cx = polyhedral_complex(net, cube(2))
    assert (cx.locate([[5.0, 5.0], [1.0, 1.0 + 1e-9]]) == -1).all()


def test_points_are_located_where_units_vanish():
    # The second layer is x - x, whose sign float64 gives as it rounds.
    net = ReluNetwork.from_layers(
        [([[0.1, 0.3], [0.1, 0.3]], [1, 1.0]), ([[0.7, -0.7], [0.3, -0.3]], [0, 0]), ([[1.0, 1.0]], [0])]
    )
    cx = polyhedral_complex(net, cube(2))
    assert (cx.locate(cube(2).sample(500, np.random.default_rng(0))) >= 0).all()


def test_slopes_that_leave_float64_are_announced_on_small_boxes():
    net = ReluNetwork.from_layers([([[1e200]], [0]), ([[1e200]], [0])])
    assert np.isfinite(net([1e-300])).all() and leaves_float64(net, Box([-1e-300], [1e-300]))


def test_scales_of_units_behind_sleeping_ones_are_not_zero():
    net = ReluNetwork.from_layers([([[1.0]], [-10.0]), ([[5.0]], [0]), ([[1.0]], [0])])
    first, second, _ = layer_scales(net, Box([0], [1]))
    assert first == [11.0] and second == [ASLEEP * 5 * 11]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_nothing_has_all_properties(d):
    nothing = polyhedral_complex(reference_network((d, 5, 4, 2), 0), cube(d), budget=0)
    assert nothing.A.shape == (0, 2, d) and nothing.c.shape == (0, 2)
    assert nothing.vertices.shape == (0, d) and nothing.edges.shape == (0, 2)
    assert nothing.vertex_signs.shape == nothing.edge_signs.shape == (0, 9)
    assert len(nothing.pieces) == len(nothing.neighbours) == len(nothing.regions) == nothing.n_maps == 0
    assert (nothing.locate(np.zeros((2, d))) == -1).all()
    with pytest.raises(IndexError):
        nothing.regions[0]
    with pytest.raises(IndexError):
        nothing.neighbours_of(0)


@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("most", [1, 7, 2.5, np.inf])
def test_no_more_cells_than_asked_for(most, certified):
    for net in (
        reference_network((2, 16, 16, 1), 0),
        degenerate_network("integer", 2, np.random.default_rng(0)),
    ):
        cx = polyhedral_complex(net, cube(2), max_cells=most, certified=certified)
        assert 1 <= cx.n_regions <= np.ceil(most) and cx.complete == (most == np.inf)


@pytest.mark.parametrize("most", [0, -1, np.nan])
def test_bad_limits_are_explained(most):
    with pytest.raises(ValueError, match="max_cells"):
        polyhedral_complex(reference_network((2, 4, 1), 0), cube(2), max_cells=most)


def test_complexes_are_pickled():
    cx = polyhedral_complex(reference_network((2, 8, 8, 1), 0), cube(2))
    again = pickle.loads(pickle.dumps(cx))
    np.testing.assert_array_equal(again.neighbours, cx.neighbours)
    assert again.regions[-1].volume == cx.regions[-1].volume


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_errors_of_a_progress_callback_come_out(n_jobs):
    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        region_count(reference_network((2, 16, 16, 1), 0), cube(2), progress=stop, n_jobs=n_jobs)


def test_many_outputs():
    rng = np.random.default_rng(0)
    hidden = random_network(rng, 2, (8, 8)).layers[:-1]
    net = ReluNetwork.from_layers([*hidden, (rng.normal(size=(700, 8)), np.zeros(700))])
    cx = polyhedral_complex(net, cube(2))
    assert cx.A.shape == (cx.n_regions, 700, 2) and 1 < cx.n_maps <= cx.n_pieces <= cx.n_regions


def test_deep_and_narrow_networks():
    rng = np.random.default_rng(0)
    for d, widths in [(2, (4,) * 12), (3, (3, 1, 2, 1, 3)), (2, (1,) * 10)]:
        check_certified(random_network(rng, d, widths), cube(d))


def test_limits_hold_on_a_line_as_well():
    net = reference_network((1, 40, 40, 1), 0)
    cx = polyhedral_complex(net, cube(1), max_cells=5, certified=True)
    assert cx.n_regions == 5 and not cx.complete


def test_cells_of_units_below_the_smallest_float_are_counted():
    """Slopes of the second layer are 1e-400: zero in float64, and a fold all the same."""
    layers = [([[1e-200, 0.0], [0.0, 1e-200]], [0, 0]), ([[1e-200, -1e-200]], [0]), ([[1.0]], [0])]
    net = ReluNetwork.from_layers(layers)
    exact, counted = exact_complex(net, (-1, 1)), region_count(net, (-1, 1), certified=True)
    assert exact.n_regions == counted.n_regions == 5
    cells = polyhedral_complex(net, (-1, 1), certified=True)
    assert {p.tobytes() for p in cells.patterns} == {p.tobytes() for p in exact.patterns}


def test_singular_steps_do_not_leak_from_the_search_for_a_deep_point():
    """Slacks of 1e-200 and 1: squares of their quotient are infinite."""
    rows = np.array([[1.0, 0.0, -1e-200], [-1.0, 0.0, -1e-200], [0.0, 1.0, -1.0]])
    point = deep_point(rows, np.zeros(2), None)
    assert np.all(rows[:, :-1] @ point + rows[:, -1] < 0)


def test_cells_of_a_box_of_denormal_width():
    """Five folds through 0 seen from 1e-314 away: every product underflows, and no sign is guessed."""
    W = 1e-23 * np.random.default_rng(0).normal(size=(5, 2))
    net = ReluNetwork.from_layers([(W, np.zeros(5)), (np.ones((1, 5)), [0.0])])
    assert polyhedral_complex(net, (-3e-314, 4e-314), certified=True).n_regions == 10
