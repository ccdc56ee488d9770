"""Fold-sets: rules for building them, what the output shows of them, and counts in the plane."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.calculus import linear_combination
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.conditions.generality import check_generality
from pindown.geometry.conditions.transparency import check_transparency
from pindown.geometry.folds.fold_set import _folds, fold_set
from tests.geometry.fold_nets import exact_cells, gaussian, symmetric_copy, transparent
from tests.geometry.oracles import KINDS, degenerate_network

SQUARE = Box.cube(2, -2, 2)


def visible(net, box=SQUARE):
    folds = fold_set(net, box)
    return folds.only(folds.visible)


def on_folds(folds, points, tol=1e-9):
    """Whether each point lies on one of the segments."""
    if not len(folds):
        return np.zeros(len(points), dtype=bool)
    a, b = folds.segments[:, 0], folds.segments[:, 1]
    along = (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True)
    t = np.einsum("psd,sd->ps", points[:, None] - a, along)
    t = np.clip(t, 0, np.linalg.norm(b - a, axis=1))
    gap = np.linalg.norm(points[:, None] - (a + t[..., None] * along), axis=2)
    return gap.min(axis=1) <= tol


def spread(folds, n=3):
    """Some points inside every segment."""
    shares = np.linspace(0.07, 0.91, n)[:, None, None]
    ends = folds.segments
    return (ends[:, 0] + shares * (ends[:, 1] - ends[:, 0])).reshape(-1, 2)


relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])


# ---------------------------------------------------------------- the rules


@pytest.mark.parametrize("seed", range(6))
def test_relu_rule(seed):
    """Phuong 2021, Lemma A.8: what is left of f's folds where f > 0, and the zero set of f."""
    f = gaussian(np.random.default_rng(seed), (2, 4, 3, 1))
    before, after = visible(f), visible(relu @ f)
    points = spread(before)
    values = f(points)[:, 0]
    far = np.abs(values) > 1e-6
    assert np.array_equal(on_folds(after, points[far]), values[far] > 0)
    new = spread(after)
    old = on_folds(before, new)
    assert np.abs(f(new[~old])).max(initial=0) < 1e-9 and (f(new[old]) > -1e-9).all()
    # The whole zero set is there: walk along random segments and look where f changes sign.
    rng = np.random.default_rng(seed)
    a, b = SQUARE.sample(300, rng), SQUARE.sample(300, rng)
    crosses = (f(a) * f(b))[:, 0] < 0
    a, b = a[crosses], b[crosses]
    for _ in range(60):
        middle = (a + b) / 2
        same = ((f(a) * f(middle)) > 0)[:, 0, None] if len(a) else np.zeros((0, 1), bool)
        a, b = np.where(same, middle, a), np.where(same, b, middle)
    assert on_folds(after, a, 1e-8).all()


@pytest.mark.parametrize("seed", range(6))
def test_sum_rule(seed):
    """Phuong 2021, Lemma A.9: the folds of a sum are among those of its terms."""
    rng = np.random.default_rng(seed)
    f, g = gaussian(rng, (2, 3, 1)), gaussian(rng, (2, 3, 2, 1))
    points = spread(visible(linear_combination([2.0, -1.0], [f, g])))
    assert (on_folds(visible(f), points) | on_folds(visible(g), points)).all()


def test_sum_rule_is_an_inclusion_only():
    f = gaussian(np.random.default_rng(0), (2, 3, 1))
    assert len(visible(f)) and len(visible(f - f)) == 0


@pytest.mark.parametrize("seed", range(4))
def test_units_of_a_general_network_fold_where_any_unit_below_does(seed):
    """Phuong 2021, Lemma A.13."""
    net = gaussian(np.random.default_rng(seed), (2, 3, 3, 2, 1))
    assert check_generality(net, SQUARE).ok
    for layer in (2, 3, 4):
        upto = net[:layer]
        for unit in range(upto.out_features):
            here = visible(_pick(upto, unit))
            below = [visible(relu @ _pick(net[: layer - 1], j)) for j in range(net.widths[layer - 1])]
            assert np.any([on_folds(part, spread(here)) for part in below], axis=0).all()
            assert all(on_folds(here, spread(part)).all() for part in below)


def _pick(net, unit):
    W, b = net.layers[-1]
    last = ReluNetwork.from_layers([(W[unit : unit + 1], b[unit : unit + 1])])
    return last if net.depth == 1 else ReluNetwork((*net.layers[:-1], *last.layers))


@pytest.mark.parametrize("seed", range(6))
def test_output_shows_only_unit_folds(seed):
    """Phuong 2021, Lemma A.15 a: dense samples of kinks of the output lie on unit zero sets."""
    rng = np.random.default_rng(seed)
    net = gaussian(rng, (2, 4, 4, 3, 1))
    folds = fold_set(net, SQUARE)
    a, b = SQUARE.sample(2000, rng), SQUARE.sample(2000, rng)
    b = a + 0.05 * (b - a)
    bent = np.abs(net(a) + net(b) - 2 * net((a + b) / 2))[:, 0] > 1e-9
    for _ in range(40):
        middle = (a + b) / 2
        left = np.abs(net(a) + net(middle) - 2 * net((a + middle) / 2)) > 1e-9 * np.linalg.norm(
            b - a, axis=1, keepdims=True
        )
        if np.linalg.norm(b - a, axis=1).max() < 1e-6:
            break
        a, b = np.where(left, a, middle), np.where(left, middle, b)
    assert bent.any() and on_folds(folds.only(folds.visible), a[bent], 1e-5).all()


@pytest.mark.parametrize("widths", [(2, 4, 1), (2, 3, 3, 1), (2, 4, 4, 3, 1), (2, 3, 3, 3, 3, 1)])
@pytest.mark.parametrize("seed", range(2))
def test_general_transparent_networks_show_all_folds(widths, seed):
    """Phuong 2021, Lemma 2.1 (with h^{1:l} in (2.7)) and Lemma A.15 b."""
    net = transparent(np.random.default_rng(seed), widths, SQUARE)
    assert check_generality(net, SQUARE).ok and check_transparency(net, SQUARE).transparent
    folds = fold_set(net, SQUARE)
    assert len(folds) and folds.visible.all()


def test_folds_behind_a_dead_layer_are_invisible():
    # relu(x) - 1 is the second layer: left of x = 1 it is off, and the fold at x = 0 with it.
    net = ReluNetwork.from_layers([([[1.0, 0]], [0]), ([[1.0]], [-1]), ([[1.0]], [0])])
    folds = fold_set(net, SQUARE)
    assert dict(zip(folds.units.tolist(), folds.visible.tolist(), strict=True)) == {0: False, 1: True}


def test_fold_set_needs_the_network_up_to_the_layer():
    """Phuong 2021, (2.7) prints h^{l:l}, the layer alone; where widths allow to read it so, it fails."""
    net = transparent(np.random.default_rng(1), (2, 2, 2, 1), SQUARE)
    second = fold_set(net, SQUARE).by_layer[2]
    assert len(second) and second.visible.all()
    assert np.abs(net[:2](second.centres)).min(axis=1).max() < 1e-9  # h^{1:2}
    assert np.abs(net[1:2](second.centres)).min(axis=1).max() > 1e-3  # h^{2:2}


# ---------------------------------------------------------------- counts, gradients, values


@pytest.mark.parametrize("seed", range(5))
def test_cells_of_one_hidden_layer(seed):
    """In general position: 1 + lines + crossings inside the box."""
    net = gaussian(np.random.default_rng(seed), (2, 7, 1))
    folds = fold_set(net, SQUARE)
    (W, b), _ = net.layers
    pairs = [(i, j) for i in range(7) for j in range(i)]
    crossings = [np.linalg.solve(W[[i, j]], -b[[i, j]]) for i, j in pairs]
    inside = int(SQUARE.contains(np.array(crossings)).sum())
    lines = len(np.unique(folds.units))
    assert folds.complex.n_regions == 1 + lines + inside
    assert len(folds) == lines + 2 * inside  # each crossing cuts two lines once


@pytest.mark.parametrize("widths", [(1, 5, 4, 2), (2, 4, 4, 1), (3, 4, 3, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_agree_in_value_and_differ_in_gradient(widths, seed):
    net, box = gaussian(np.random.default_rng(seed), widths), Box.cube(widths[0], -2, 2)
    folds = fold_set(net, box)
    A, c = folds.complex.A, folds.complex.c
    for i in range(len(folds)):
        one, other = folds.cells[i]
        corners = folds.corners(i)
        np.testing.assert_allclose(
            corners @ A[one].T + c[one], corners @ A[other].T + c[other], rtol=0, atol=1e-9
        )
        assert (np.abs(folds.jumps[i]).max() > 1e-9) == folds.visible[i]
        unit = folds.units[i]
        assert np.abs(net.preactivations(corners)[:, unit]).max() < 1e-9
        assert folds.complex.patterns[one, unit] != folds.complex.patterns[other, unit]


@pytest.mark.parametrize("widths", [(1, 5, 4, 1), (2, 4, 4, 3, 1), (3, 5, 4, 1)])
def test_agrees_with_rational_cells(widths):
    net, box = gaussian(np.random.default_rng(3), widths), Box.cube(widths[0], -1, 1.5)
    ours, exact = fold_set(net, box), _folds(exact_cells(net, box))
    assert len(ours) == len(exact) and np.isclose(ours.size, exact.size, rtol=1e-9)
    key = [np.lexsort([*f.centres.round(7).T, f.units]) for f in (ours, exact)]
    np.testing.assert_allclose(ours.centres[key[0]], exact.centres[key[1]], atol=1e-7)
    assert np.array_equal(ours.units[key[0]], exact.units[key[1]])
    assert np.array_equal(ours.visible[key[0]], exact.visible[key[1]])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_coinciding_folds_agree_with_rational_cells(kind, d):
    for seed in range(2):
        net, box = degenerate_network(kind, d, np.random.default_rng(seed), (4, 4)), Box.cube(d, -1, 1)
        ours, exact = fold_set(net, box, certified=True), _folds(exact_cells(net, box))
        assert len(ours) == len(exact) and np.isclose(ours.size, exact.size)
        assert np.isclose(ours.only(ours.visible).size, exact.only(exact.visible).size)


def test_invariant_under_permutation_and_positive_scaling():
    rng = np.random.default_rng(0)
    net = gaussian(rng, (2, 4, 4, 1))
    one, two = fold_set(net, SQUARE), fold_set(symmetric_copy(net, rng), SQUARE)
    assert len(one) == len(two) and np.isclose(one.size, two.size)
    assert on_folds(two, spread(one)).all() and on_folds(one, spread(two)).all()
    for layer, folds in one.by_layer.items():
        assert np.isclose(folds.size, two.by_layer[layer].size)


def test_one_dimension_by_hand():
    # |x| - 1, and its ReLU: folds at 0 (layer 1, two units at once) and at -1 and 1 (layer 2).
    net = ReluNetwork.from_layers([([[1.0], [-1]], [0, 0]), ([[1.0, 1]], [-1]), ([[1.0]], [0])])
    folds = fold_set(net, (-3, 3))
    where = sorted(zip(folds.points[:, 0].round(9).tolist(), folds.layers.tolist(), strict=True))
    assert where == [(-1.0, 2), (0.0, 1), (1.0, 2)]
    assert dict(zip(folds.points[:, 0].round(9).tolist(), folds.visible.tolist(), strict=True)) == {
        -1.0: True,
        0.0: False,
        1.0: True,
    }
    assert len(folds.of_unit(0)) == len(folds.of_unit(1)) == 1 and folds.size == 3
    assert repr(folds) == "FoldSet(3 points, 2 visible, 3 in number)"


def test_areas_in_space():
    net = ReluNetwork.from_layers([(np.eye(3)[:2], [0, -0.5]), ([[1.0, 1]], [0])])
    folds = fold_set(net, (0 - 1, 1))
    assert np.isclose(folds.size, 8) and folds.only([0]).offsets.tolist() == [0, 4]
    assert folds.by_layer[1].size == folds.size and "polygons" in repr(folds)


def test_planes_through_many_inputs():
    net = gaussian(np.random.default_rng(0), (10, 8, 6, 3))
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((10, 2)))[0]
    on_plane = net @ ReluNetwork.from_layers([(basis, np.full(10, 0.1))])
    folds = fold_set(on_plane, SQUARE)
    x = folds.centres @ basis.T + 0.1
    values = net.preactivations(x)[np.arange(len(folds)), folds.units]
    assert len(folds) > 10 and np.abs(values).max() < 1e-9


def test_complex_and_network_give_the_same():
    net = gaussian(np.random.default_rng(0), (2, 5, 3, 1))
    one, two = fold_set(net, SQUARE), fold_set(polyhedral_complex(net, SQUARE))
    assert np.array_equal(one.points, two.points) and np.array_equal(one.units, two.units)
    assert one.complete and not one.points.flags.writeable


def test_no_folds():
    folds = fold_set(ReluNetwork.from_layers([([[1.0, 2.0]], [0])]), SQUARE)
    assert len(folds) == 0 and folds.size == 0 and folds.segments.shape == (0, 2, 2)
    assert folds.by_layer == {} and folds.jumps.shape == (0, 1, 2) and folds.centres.shape == (0, 2)


def test_bad_input():
    net = gaussian(np.random.default_rng(0), (2, 3, 1))
    with pytest.raises(TypeError, match="needs a box"):
        fold_set(net)
    with pytest.raises(TypeError, match="has its own box"):
        fold_set(polyhedral_complex(net, SQUARE), SQUARE)
    with pytest.raises(ValueError, match="takes 4"):
        fold_set(gaussian(np.random.default_rng(0), (4, 3, 1)), Box.cube(4, -1, 1))
    with pytest.raises(ValueError, match="segments in the plane only"):
        _ = fold_set(gaussian(np.random.default_rng(0), (1, 3, 1)), (-1, 1)).segments
