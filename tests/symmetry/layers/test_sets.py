"""Set layers: they permute with the elements, masks leave some out, and the empty set has an answer."""

import itertools

import numpy as np
import pytest
import torch

from pindown.symmetry import symmetric
from pindown.symmetry.layers import EquivariantLinear, PermEquivariant, PermInvariant, SetNetwork
from tests.symmetry.layers.actions import draw, noisy

torch.set_num_threads(1)


@pytest.mark.parametrize("pool", ["mean", "sum", "max"])
def test_outputs_move_with_the_elements(pool):
    x = draw(3, 4, 2)
    layer, readout = noisy(PermEquivariant(2, 5, pool)), noisy(PermInvariant(2, 5, pool))
    network = noisy(SetNetwork([2, 6, 6, 3], pool))
    for perm in itertools.permutations(range(4)):
        order = list(perm)
        assert torch.allclose(layer(x[:, order]), layer(x)[:, order], rtol=0, atol=1e-12)
        assert torch.allclose(readout(x[:, order]), readout(x), rtol=0, atol=1e-12)
        assert torch.allclose(network(x[:, order]), network(x), rtol=0, atol=1e-10)


def test_sum_layer_is_the_general_layer_of_the_symmetric_group():
    ours = noisy(PermEquivariant(2, 3, "sum", bias=False))
    general = EquivariantLinear(symmetric(5).permuting(), c_in=2, c_out=3, bias=False).double()
    identity, rest = general.basis
    assert torch.allclose(identity * 5**0.5, torch.eye(5, dtype=torch.float64))
    weight = torch.stack([(ours.own + ours.common).T * 5**0.5, ours.common.T * 20**0.5], -1)
    assert torch.allclose(rest * 20**0.5, 1 - torch.eye(5, dtype=torch.float64))
    general.weight.data = weight.detach()
    x = draw(4, 5, 2)
    assert torch.allclose(general(x.transpose(1, 2)).transpose(1, 2), ours(x), atol=1e-12)


def test_invariant_layer_is_the_pooled_equivariant_one():
    layer, readout = (
        PermEquivariant(2, 3, "sum", bias=False).double(),
        PermInvariant(2, 3, "sum").double(),
    )
    x = draw(4, 6, 2)
    readout.common.data = (layer.own + 6 * layer.common).detach()
    assert torch.allclose(layer(x).sum(1), readout(x), atol=1e-12)


@pytest.mark.parametrize("pool", ["mean", "sum", "max"])
def test_masked_elements_are_not_seen(pool):
    x = draw(3, 5, 2)
    mask = torch.tensor([[1, 1, 1, 0, 0]] * 3).bool()
    layer, network = noisy(PermEquivariant(2, 4, pool)), noisy(SetNetwork([2, 6, 3], pool))
    assert torch.allclose(layer(x, mask)[:, :3], layer(x[:, :3]), atol=1e-12)
    assert not layer(x, mask)[:, 3:].any()
    assert torch.allclose(network(x, mask), network(x[:, :3]), atol=1e-12)
    empty = torch.zeros(3, 5).bool()
    assert torch.isfinite(network(x, empty)).all()
    assert torch.allclose(network(x[:, :0]), network(x, empty))


def test_injective_or_rectified_layers_need_the_same_weights():
    """A rectified layer that permutes has a matrix that commutes: x and -x show both signs of it."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((3, 3))
    swap = np.eye(3)[[1, 0, 2]]
    X = np.vstack([np.eye(3), -np.eye(3)])
    wrong = np.maximum(X @ swap.T @ theta.T, 0) - np.maximum(X @ theta.T, 0) @ swap.T
    assert np.abs(wrong).max() > 0.1
    recovered = np.maximum(X @ theta.T, 0)
    assert np.allclose(recovered[:3] - recovered[3:], theta.T)


def test_bad_sets_are_refused():
    layer = PermEquivariant(2, 3)
    with pytest.raises(ValueError, match="takes tensors"):
        layer(torch.ones(4, 5, 3))
    with pytest.raises(ValueError, match="takes tensors"):
        layer(torch.ones(2))
    with pytest.raises(ValueError, match="mask must have shape"):
        layer(torch.ones(4, 5, 2), torch.ones(4, 6))
    with pytest.raises(ValueError, match="pool must be one of"):
        PermInvariant(2, 3, "median")
    with pytest.raises(ValueError, match="at least the input"):
        SetNetwork([3])


def test_what_stands_at_missing_elements_does_not_matter():
    layer, mask = noisy(PermEquivariant(1, 2)), torch.tensor([True, True, False])
    x = torch.tensor([[1.0], [2.0], [torch.nan]], dtype=torch.float64)
    y = layer(x, mask)
    assert torch.equal(y[:2], layer(x[:2])) and torch.equal(y[2], torch.zeros(2, dtype=torch.float64))
