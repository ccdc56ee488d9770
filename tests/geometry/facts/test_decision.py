"""Decision regions: classes at random points, volumes by Monte Carlo, borders by hand and on lines."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.decision import decision_regions, with_comparisons
from pindown.geometry.facts.level_sets import level_set, volume_above
from pindown.geometry.slices.segment import along_segment
from tests.geometry.oracles import cube, random_network, reference_network


def predicted(net, X):
    values = net(X)
    return values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] >= 0).astype(int)


@pytest.mark.parametrize("widths", [(1, 8, 8, 3), (2, 8, 8, 4), (2, 6, 6, 1), (3, 6, 6, 3), (4, 5, 2)])
def test_classes_and_shares(widths):
    net, box, rng = reference_network(widths, 1), cube(widths[0]), np.random.default_rng(0)
    found = decision_regions(net, box)
    X = box.sample(50_000, rng)
    classes = predicted(net, X)
    cells = found.complex.locate(X)
    assert np.mean(cells < 0) < 1e-3  # points on folds
    np.testing.assert_array_equal(found.classes[cells[cells >= 0]], classes[cells >= 0])
    shares = np.bincount(classes, minlength=found.n_classes) / len(X)
    errors = np.sqrt(found.shares * (1 - found.shares) / len(X))
    assert np.all(np.abs(shares - found.shares) <= 4 * errors + 1e-12)
    assert found.shares.sum() == pytest.approx(1, abs=1e-9) and found.exact


@pytest.mark.parametrize("d", [1, 2, 3])
def test_two_outputs_have_the_zero_set_of_their_difference_as_border(d):
    net = reference_network((d, 8, 8, 2), 2)
    difference = ReluNetwork.from_layers(
        [
            *net.layers[:-1],
            (
                net.layers[-1][0][:1] - net.layers[-1][0][1:],
                net.layers[-1][1][:1] - net.layers[-1][1][1:],
            ),
        ]
    )
    found, zero = decision_regions(net, cube(d)), level_set(difference, cube(d), level=0)
    assert found.boundary.size == pytest.approx(zero.size, rel=1e-9)
    assert found.borders.get((0, 1), 0) == pytest.approx(zero.size, rel=1e-9)
    assert found.volumes[0] == pytest.approx(volume_above(difference, cube(d)).volume, rel=1e-9)
    single = decision_regions(difference, cube(d))
    assert (
        single.volumes[::-1] == pytest.approx(found.volumes)
        and single.n_islands[::-1].tolist() == found.n_islands.tolist()
    )


@pytest.mark.parametrize("seed", range(3))
def test_borders_are_ties_of_the_two_largest(seed):
    net = random_network(np.random.default_rng(seed), 2, (8,))
    rng = np.random.default_rng(seed)
    net = ReluNetwork.from_layers(
        [*net.layers[:-1], (rng.standard_normal((4, 8)), rng.standard_normal(4) / 4)]
    )
    found = decision_regions(net, (-1, 1))
    edges = found.boundary
    values = net(edges.points)
    pairs = np.repeat(found.classes[edges.cells], np.diff(edges.offsets), axis=0)
    ties = np.take_along_axis(values, pairs, axis=1)
    np.testing.assert_allclose(ties, values.max(axis=1)[:, None] * [1, 1], atol=1e-9)
    assert sum(found.borders.values()) == pytest.approx(edges.size)


@pytest.mark.parametrize("seed", range(3))
def test_changes_of_class_along_lines(seed):
    net, rng = reference_network((2, 8, 8, 3), seed), np.random.default_rng(seed)
    segments = decision_regions(net, (-1, 1)).boundary.segments
    for _ in range(30):
        a, b = rng.uniform(-1, 1, (2, 2))
        line = along_segment(with_comparisons(net), a, b)
        classes = predicted(net, line.at((line.knots[1:] + line.knots[:-1]) / 2))
        assert int(np.sum(classes[1:] != classes[:-1])) == count_hits(segments, a, b)


def count_hits(segments, a, b):
    def side(p, q, x):
        return np.sign((q - p)[..., 0] * (x - p)[..., 1] - (q - p)[..., 1] * (x - p)[..., 0])

    p, q = segments[:, 0], segments[:, 1]
    return int(np.sum((side(a, b, p) != side(a, b, q)) & (side(p, q, a) != side(p, q, b))))


def test_islands():
    # |x| >= 1 in two separate strips, |x| < 1 in one between them.
    net = ReluNetwork.from_layers([([[1.0, 0.0], [-1.0, 0.0]], [0, 0]), ([[1.0, 1.0]], [-1])])
    found = decision_regions(net, (-2, 2))
    assert found.n_islands.tolist() == [1, 2] and found.shares.tolist() == [0.5, 0.5]
    assert found.borders == {(0, 1): pytest.approx(8)}
    assert repr(found) == "DecisionRegions(class: share in islands, 0: 0.5 in 1, 1: 0.5 in 2)"


def test_equal_outputs_go_to_the_first():
    net = ReluNetwork.from_layers([([[1.0, 0.0]], [0]), ([[1.0], [1.0], [0.5]], [0, 0, 0])])
    found = decision_regions(net, (-1, 1))
    assert found.shares.tolist() == [1, 0, 0] and found.n_islands.tolist() == [1, 0, 0]
    assert len(found.boundary) == 0 and found.borders == {}


def test_takes_a_complex_and_keeps_its_certification():
    net = reference_network((2, 5, 5, 3), 0)
    cx = polyhedral_complex(net, (-1, 1), certified=True)
    found = decision_regions(cx)
    assert found.complex.certified and found.complex.box == cx.box
    assert found.shares == pytest.approx(decision_regions(net, (-1, 1)).shares)


def test_partial_and_bad_input():
    net = reference_network((2, 5, 5, 3), 0)
    nothing = decision_regions(net, (-1, 1), budget=0)
    assert not nothing.exact and nothing.shares.tolist() == [0, 0, 0] and "not complete" in repr(nothing)
    with pytest.raises(TypeError, match="needs a box"):
        decision_regions(net)
    with pytest.raises(TypeError, match="its own box"):
        decision_regions(polyhedral_complex(net, (-1, 1)), (-1, 1))
    with pytest.raises(TypeError, match="got ndarray"):
        decision_regions(np.eye(2), Box([0], [1]))
    with pytest.raises(ValueError, match="1 to 3 inputs"):
        decision_regions(reference_network((4, 3, 2), 0), (-1, 1)).boundary  # noqa: B018
