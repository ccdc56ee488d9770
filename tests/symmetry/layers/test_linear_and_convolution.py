"""Torch layers commute with every element of their group, and are what they say in known cases."""

import numpy as np
import pytest
import torch

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.layers import (
    CosetPool,
    EquivariantLinear,
    GroupConv,
    GroupLift,
    GroupPool,
    coset_representation,
    direct_sum,
    group_convolution,
)
from tests.symmetry.layers.actions import draw, noisy, polygon, skewed

torch.set_num_threads(1)
GROUPS = [cyclic(5), dihedral(4), symmetric(3)]


def moved(x, matrix):
    return x @ torch.as_tensor(matrix).T


def seeded():
    return torch.Generator().manual_seed(0)


def worst(layer, group_in, group_out, x):
    """Largest difference over all elements; ``group_out`` None asks for invariance."""
    with torch.no_grad():
        y, errors = layer(x), []
        for g in range(group_in.order):
            expected = y if group_out is None else moved(y, group_out.matrices[g])
            errors.append(float((layer(moved(x, group_in.matrices[g])) - expected).abs().max()))
    return max(errors)


D4 = dihedral(4)
PAIRS = [
    (cyclic(6), cyclic(6)),
    (symmetric(4).permuting(), symmetric(4)),
    (polygon(5), dihedral(5)),
    (D4.acting_by(skewed(direct_sum(polygon(4), D4.permuting()), 0)), polygon(4)),
    (D4, D4.acting_by(skewed(D4.permuting(), 1))),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_equivariant_linear_commutes_with_every_element(pair):
    layer = noisy(EquivariantLinear(*pair, c_in=2, c_out=3, generator=seeded()))
    assert worst(layer, *pair, draw(4, 2, pair[0].degree)) < 1e-10


def test_constants_survive_single_precision():
    """Casting down and up again must not round the basis: it would commute to seven digits only."""
    group = D4.acting_by(skewed(direct_sum(polygon(4), D4.permuting()), 0))
    layer = noisy(EquivariantLinear(group).float())
    assert worst(layer, group, group, draw(4, 6)) < 1e-10
    stored = EquivariantLinear(group).double()
    stored.load_state_dict(layer.state_dict())
    assert torch.equal(stored(draw(4, 6)), layer(draw(4, 6)))


def test_equivariant_linear_takes_plain_vectors_and_keeps_the_variance():
    group = symmetric(4).permuting()
    layer = EquivariantLinear(group, group)
    assert layer(torch.ones(7, 4)).shape == (7, 4) and layer(torch.ones(4)).shape == (4,)
    wide = EquivariantLinear(cyclic(16), c_in=32, c_out=64, bias=False, generator=seeded()).double()
    assert 0.85 < float(wide(draw(50, 32, 16)).detach().std()) < 1.15
    with pytest.raises(ValueError, match="takes tensors"):
        wide(torch.ones(3, 16))
    with pytest.raises(ValueError, match="only the zero map"):
        EquivariantLinear(polygon(5), np.ones((10, 1, 1)))
    with pytest.raises(ValueError, match="c_in must be"):
        EquivariantLinear(group, c_in=0)


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
def test_group_convolution_commutes_and_equals_the_sum(group):
    layer = noisy(GroupConv(group, 2, 3, generator=seeded()))
    x = draw(4, 2, group.order)
    assert worst(layer, group, group, x) < 1e-10
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    direct = np.zeros((4, 3, group.order))
    for u in range(group.order):
        for v in range(group.order):
            source = group.table[u, group.inverses[v]]
            direct[:, :, u] += x[:, :, source].numpy() @ weight[:, :, v].T
    assert np.allclose(layer(x).detach().numpy(), direct + bias[:, None], atol=1e-12)
    single = group_convolution(x[:, 0].numpy(), weight[0, 0], group)
    alone = GroupConv(group, 1, 1, bias=False).double()
    alone.weight.data = layer.weight.data[:1, :1]
    assert np.allclose(alone(x[:, :1]).detach().numpy()[:, 0], single, atol=1e-12)


def test_convolution_over_shifts_is_torchs_circular_convolution():
    layer = noisy(GroupConv(cyclic(8), 2, 3, bias=False))
    x = draw(5, 2, 8)
    # torch correlates: the flipped filter convolves, and padding by 7 wraps all the way round
    theirs = torch.nn.functional.conv1d(
        torch.nn.functional.pad(x, (7, 0), mode="circular"), layer.weight.flip(-1)
    )
    assert torch.allclose(layer(x), theirs, atol=1e-12)


@pytest.mark.parametrize(
    "group",
    [symmetric(4).permuting(), polygon(5), D4.acting_by(skewed(D4.permuting(), 3))],
    ids=["points", "plane", "skewed"],
)
def test_lift_convolve_pool_is_invariant(group):
    x = draw(4, 2, group.degree)
    lift = noisy(GroupLift(group, 2, 3))
    assert worst(lift, group, group.regular(), x) < 1e-10
    for how in ("mean", "sum", "max"):
        conv = noisy(GroupConv(group, 3, 4))
        net = torch.nn.Sequential(lift, torch.nn.ReLU(), conv, torch.nn.ReLU(), GroupPool(how))
        assert worst(net, group, None, x) < 1e-10
        assert float(net(x).detach().std()) > 1e-3  # and it is not constant


def test_coarsening_moves_like_functions_on_cosets():
    group, subgroup = symmetric(4), [0, 1]
    for how in ("mean", "sum", "max"):
        pool = CosetPool(group, subgroup, how)
        assert worst(pool, group, coset_representation(group, subgroup), draw(3, 24)) < 1e-12
    with pytest.raises(ValueError, match="how must be one of"):
        CosetPool(group, subgroup, "median")


def test_gradients_reach_all_parameters():
    group = dihedral(4).permuting()
    net = torch.nn.Sequential(
        GroupLift(group, 1, 2), torch.nn.ReLU(), GroupConv(group, 2, 1), GroupPool()
    )
    net(torch.randn(6, 1, 4, generator=seeded())).square().sum().backward()
    assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in net.parameters())


def test_printed_correlation_is_no_convolution():
    """The inner products with shifted templates are a cross-correlation: the filter must be flipped."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 6))
    shifts = np.stack([np.roll(w, i) for i in range(6)])
    convolved = np.array([sum(x[(i - j) % 6] * w[j] for j in range(6)) for i in range(6)])
    np.testing.assert_allclose(group_convolution(x, w, cyclic(6)), convolved, atol=1e-12)
    assert np.abs(shifts @ x - convolved).max() > 0.1
    flipped = np.roll(w[::-1], 1)
    assert np.allclose(np.stack([np.roll(flipped, i) for i in range(6)]) @ x, convolved)


def test_printed_vector_of_equal_entries_is_not_what_gets_permuted():
    """f(gx) is a permutation of the values at all images of w; the slide shows <w, gx> in every row."""
    group = dihedral(3).permuting()
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 3))
    orbit = np.stack([matrix @ w for matrix in group.matrices])
    for g in range(group.order):
        ours = np.tanh(orbit @ (group.matrices[g] @ x))
        assert np.allclose(ours, group.regular().matrices[g] @ np.tanh(orbit @ x))
        printed = np.full(6, np.tanh(w @ (group.matrices[g] @ x)))
        assert np.abs(np.sort(ours) - printed).max() > 0.1


def test_pooling_without_a_nonlinearity_sees_the_group_mean_only():
    group = cyclic(5)
    linear = torch.nn.Sequential(noisy(GroupLift(group, 1, 3)), GroupPool())
    x = draw(4, 1, 5)
    assert torch.allclose(linear(x), linear(x.mean(-1, keepdim=True).expand(-1, -1, 5)), atol=1e-12)


def test_convolutions_that_do_not_fit_into_memory_are_refused():
    with pytest.raises(ValueError, match="fewer channels"):
        GroupConv(cyclic(2000), 16, 16)
    with pytest.raises(ValueError, match="closed under products"):
        CosetPool(cyclic(6), [0.5, 3.2])
