import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.identifiable import check_identifiable, identifiable_network
from pindown.network import ReluNetwork

PLANE = [(2, 2, 1), (2, 2, 2, 1), (2, 2, 2, 2, 1), (2, 2, 2, 2, 2, 1)]
LARGE = [
    (2, 2, 2, 1),
    (4, 4, 3, 2, 1),
    (6, 5, 4, 4, 3, 1),
    (3, 3, 3, 3, 3, 1),
    (8, 6, 5, 4, 3, 2, 1),
    (5, 5, 5, 5, 1),
]


def nudged(net, size, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [
            (W + size * rng.standard_normal(W.shape), b + size * rng.standard_normal(b.shape))
            for W, b in net.layers
        ]
    )


@pytest.mark.parametrize("widths", PLANE)
@pytest.mark.parametrize("seed", range(5))
def test_plane_networks_are_transparent_and_every_first_fold_starts_a_path_of_bends(widths, seed):
    found = check_identifiable(identifiable_network(widths, seed=seed), Box.cube(2, -1, 1))
    assert found.transparency.transparent is True
    assert found.paths >= widths[1]
    assert found.ok


def test_the_property_is_open():
    net = nudged(identifiable_network((2, 2, 2, 1), seed=1), 1e-6)
    assert check_identifiable(net, Box.cube(2, -1, 1)).ok


@pytest.mark.parametrize("widths", LARGE)
def test_larger_networks_are_transparent_on_samples_and_of_full_rank(widths):
    X = np.random.default_rng(0).uniform(-1, 1, (20_000, widths[0]))
    for seed in range(2):
        net = identifiable_network(widths, seed=seed)
        assert net.widths == widths
        assert min(z.max(axis=1).min() for z in net.trace(X)[:-1]) > 0.0
        assert all(np.linalg.matrix_rank(W) == len(W) for W, _ in net.layers[:-1])


def test_some_input_switches_all_units_on():
    """The image of the box under the layers then has full dimension, as all rows are independent."""
    from pindown.equivalence.recovery._known_layers import KnownLayers

    net = identifiable_network((4, 4, 3, 1), seed=2)
    points = KnownLayers(4, tuple((W, b) for W, b in net.layers[:-1])).inside_all_on(
        5, np.random.default_rng(0)
    )
    assert len(points) == 5 and net.pattern(points).all()


def test_another_box_gives_the_same_network_in_other_coordinates():
    low, high = np.array([10.0, -3.0, 0.0]), np.array([12.0, 5.0, 1e-3])
    net = identifiable_network((3, 3, 2, 1), seed=4, box=(low, high))
    cube = identifiable_network((3, 3, 2, 1), seed=4)
    Y = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    np.testing.assert_allclose(net((low + high) / 2 + (high - low) / 2 * Y), cube(Y), atol=1e-9)


def test_random_networks_mostly_fail_the_check():
    rng = np.random.default_rng(0)
    nets = [
        ReluNetwork.from_layers(
            [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in ((2, 2), (2, 2), (2, 1))]
        )
        for _ in range(5)
    ]
    assert not all(check_identifiable(net, (-1, 1), budget=2.0).ok for net in nets)


def test_several_outputs_and_no_hidden_layer():
    assert identifiable_network((3, 2, 4)).widths == (3, 2, 4)
    assert identifiable_network((3, 4)).widths == (3, 4)


@pytest.mark.parametrize("widths", [(2, 3, 1), (3, 1, 1), (3, 2, 3, 1), (3,), (2, 2, 0)])
def test_other_widths_are_refused(widths):
    with pytest.raises(ValueError, match="widths must be"):
        identifiable_network(widths)


def test_a_flat_box_is_refused():
    with pytest.raises(ValueError, match="interior"):
        identifiable_network((2, 2, 1), box=([0, 0], [1, 0]))
