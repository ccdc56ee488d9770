"""What bends at what, and the layers that follow: the printed lemma fails, the corrected one holds."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.geometry.conditions.generality import check_generality
from pindown.geometry.folds.canonical_surface import canonical_surface
from pindown.geometry.folds.dependency import attribute_layers, dependency_graph
from pindown.geometry.folds.fold_set import fold_set
from tests.geometry.fold_nets import gaussian, symmetric_copy
from tests.geometry.folds.test_canonical_surface import layers_of, picture

SQUARE = Box.cube(2, -1, 1)


def misplaced(net, *, variant):
    """Pieces whose true layer is outside the interval that the picture gives."""
    folds, surface = picture(net)
    layers = attribute_layers(surface, net.depth - 1, variant=variant)
    bad = []
    for piece, (low, high) in enumerate(zip(layers.lower, layers.upper, strict=True)):
        (owner,) = layers_of(surface, folds, piece)
        if not low <= owner <= high:
            bad.append((piece, int(low), int(high), owner))
    return bad


def counterexample(noise=None):
    """A second-layer fold straight across the square, and one that crosses it and bends elsewhere."""
    W1, b1 = np.array([[1, 0], [0.001, 1], [1, 0.001]]), np.array([-0.49, 5, 5])
    W2, b2 = np.array([[0.3, 0.01, 1], [0.7, 1, 0.01]]), np.array([-4.55, -5.05])
    if noise is not None:
        W1 = W1 * (1 + 0.01 * noise.standard_normal(W1.shape)) + 0.01 * noise.standard_normal(W1.shape)
        W2 = W2 * (1 + 0.003 * noise.standard_normal(W2.shape))
    return ReluNetwork.from_layers([(W1, b1), (W2, b2), ([[1.0, 2.0]], [0.5])])


def test_printed_lemma_fails_on_the_counterexample():
    """Phuong 2021, Lemma 2.3 / A.18: the printed graph puts a fold of layer 2 into layer 1 or less."""
    net = counterexample(np.random.default_rng(0))
    assert check_generality(net, SQUARE).ok
    printed, corrected = misplaced(net, variant="as_printed"), misplaced(net, variant="corrected")
    assert [(low, high, owner) for _, low, high, owner in printed] == [(1, 1, 2)]
    assert corrected == []
    _, surface = picture(net)
    assert sorted(surface.levels.tolist()) == [1, 1, 2, 2, 2]
    assert len(dependency_graph(surface).edges) == 2  # unit b bends at the first-layer fold, twice
    assert len(dependency_graph(surface, variant="as_printed").edges) > 2


def test_counterexample_is_stable():
    failures = [
        misplaced(counterexample(np.random.default_rng(seed)), variant="as_printed")
        for seed in range(10)
    ]
    assert all(failures)
    assert not any(
        misplaced(counterexample(np.random.default_rng(seed)), variant="corrected") for seed in range(10)
    )
    assert misplaced(counterexample(), variant="as_printed") and not misplaced(
        counterexample(), variant="corrected"
    )


@pytest.mark.parametrize(
    ("widths", "n"), [((2, 4, 5, 1), 120), ((2, 4, 4, 4, 1), 60), ((2, 3, 3, 3, 3, 1), 20)]
)
def test_corrected_lemma_holds_on_random_networks(widths, n):
    """200 networks, no violation; the printed graph fails on some of them."""
    nets = [gaussian(np.random.default_rng(seed), widths) for seed in range(n)]
    assert not any(misplaced(net, variant="corrected") for net in nets)
    if n >= 60:
        assert any(misplaced(net, variant="as_printed") for net in nets)


@pytest.mark.parametrize("seed", range(6))
def test_levels_ascend_along_edges_and_bends_are_some_of_the_printed_edges(seed):
    _, surface = picture(gaussian(np.random.default_rng(seed), (2, 4, 4, 4, 1)))
    bends, printed = dependency_graph(surface), dependency_graph(surface, variant="as_printed")
    for graph in (bends, printed):
        assert (surface.levels[graph.edges[:, 0]] < surface.levels[graph.edges[:, 1]]).all()
        assert (graph.path_lengths <= surface.order - surface.levels).all()
    assert {*map(tuple, bends.edges.tolist())} <= {*map(tuple, printed.edges.tolist())}


@pytest.mark.parametrize("seed", range(4))
def test_longest_paths_by_brute_force(seed):
    _, surface = picture(gaussian(np.random.default_rng(seed), (2, 3, 3, 3, 1)))
    graph = dependency_graph(surface)

    def longest(piece):
        return max((1 + longest(int(later)) for later in graph.after(piece)), default=0)

    assert [longest(i) for i in range(len(surface))] == graph.path_lengths.tolist()


def test_invariant_under_permutation_and_positive_scaling():
    rng = np.random.default_rng(0)
    net = gaussian(rng, (2, 4, 4, 1))
    shapes = []
    for copy in (net, symmetric_copy(net, rng)):
        _, surface = picture(copy)
        layers = attribute_layers(surface, 2)
        shapes.append(sorted(zip(layers.lower.tolist(), layers.upper.tolist(), strict=True)))
    assert shapes[0] == shapes[1]


def test_visible_folds_of_a_network_that_is_not_transparent_mislead():
    """A first-layer fold ends at a dead zone, as if it bent there at the deeper fold."""
    found = False
    for seed in range(40):
        net = gaussian(np.random.default_rng(seed), (2, 3, 3, 1))
        folds = fold_set(net, SQUARE)
        seen = folds.only(folds.visible)
        surface = canonical_surface(seen.segments, SQUARE)
        if not len(surface) or len(surface.rest):
            found = found or bool(len(surface.rest))
            continue
        layers = attribute_layers(surface, 2)
        owners = [min(layers_of(surface, seen, i)) for i in range(len(surface))]
        found = found or any(
            not low <= owner <= high
            for owner, low, high in zip(owners, layers.lower, layers.upper, strict=True)
        )
    assert found


def test_words():
    _, surface = picture(counterexample(np.random.default_rng(0)))
    assert "bends: 5 pieces, 2 edges, longest path 1" in repr(dependency_graph(surface))
    layers = attribute_layers(surface, 2)
    assert layers.consistent and "4 of 5 pieces have one possible layer of 2" in repr(layers)
    short = attribute_layers(surface, 1)
    assert not short.consistent and "not the folds of a general network with 1 hidden" in repr(short)


def test_bad_input():
    _, surface = picture(counterexample())
    with pytest.raises(ValueError, match="at least 1; got 0"):
        attribute_layers(surface, 0)
    empty = canonical_surface(np.zeros((0, 2, 2)), SQUARE)
    assert len(dependency_graph(empty).edges) == 0 and attribute_layers(empty, 2).consistent
