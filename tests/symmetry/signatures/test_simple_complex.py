"""Simple cells are permuted, complex cells stay, during training as before."""

import itertools

import numpy as np
import pytest
import torch

from pindown.symmetry import SimpleComplex, cyclic, dihedral
from pindown.symmetry.signatures import orbit_projections

torch.set_num_threads(1)


def block(*arguments, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SimpleComplex(*arguments, **options, dtype=torch.float64)


@pytest.mark.parametrize(
    ("nonlinearity", "pool"),
    list(itertools.product(["relu", "tanh", "step", "square"], ["sum", "mean", "max"])),
)
@pytest.mark.parametrize("group", [cyclic(6), dihedral(5).permuting()])
def test_simple_cells_move_and_complex_cells_stay(group, nonlinearity, pool):
    layer = block(group, 3, nonlinearity, pool)
    x = np.random.default_rng(0).standard_normal((4, group.degree))
    simple, complex_ = layer.simple(torch.tensor(x)), layer(torch.tensor(x))
    assert complex_.shape == (4, layer.out_features) == (4, 15)
    for index in range(group.order):
        moved = torch.tensor(group.act(index, x))
        # entry g of the moved sample is entry g index of the sample
        assert (layer.simple(moved) - simple[:, :, group.table[:, index]]).abs().max() < 1e-10
        assert (layer(moved) - complex_).abs().max() < 1e-10
    assert (complex_[0] - complex_[1]).abs().max() > 1e-3


def test_blocks_stack_train_and_stay_invariant():
    group = cyclic(8)
    net = torch.nn.Sequential(
        block(group, 4), torch.nn.Linear(20, 10, dtype=torch.float64), block(cyclic(10), 2)
    )
    rng = np.random.default_rng(1)
    x, y = torch.tensor(rng.standard_normal((16, 8))), torch.tensor(rng.standard_normal((16, 10)))
    before = net[0].weight.detach().clone()
    losses = []
    for _ in range(20):
        loss = ((net(x) - y) ** 2).mean()
        losses.append(loss.item())
        weights = list(net.parameters())
        slopes = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            torch._foreach_sub_(weights, slopes, alpha=0.1)
    assert losses[-1] < losses[0] and (net[0].weight - before).abs().max() > 1e-3
    assert (net(x.roll(3, dims=1)) - net(x)).abs().max() < 1e-10


def test_cells_are_pooled_projections():
    group = dihedral(3)
    layer = block(group, 2, "relu", "sum", (0.25,))
    x = np.random.default_rng(2).standard_normal((3, 6))
    u = orbit_projections(x, layer.weight.detach().numpy(), group)
    assert np.allclose(layer(torch.tensor(x)).detach().numpy(), np.maximum(u - 0.25, 0).sum(axis=2))


def test_bad_blocks_are_refused():
    with pytest.raises(ValueError, match="nonlinearity"):
        SimpleComplex(cyclic(3), 2, "gelu")
    with pytest.raises(ValueError, match="pool"):
        SimpleComplex(cyclic(3), 2, pool="median")
    with pytest.raises(ValueError, match="n_templates must be"):
        SimpleComplex(cyclic(3), 0)
    with pytest.raises(ValueError, match="at least one"):
        SimpleComplex(cyclic(3), 2, thresholds=())
    with pytest.raises(ValueError, match="batch, 3"):
        SimpleComplex(cyclic(3), 2)(torch.ones(2, 4))
