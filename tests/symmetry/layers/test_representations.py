"""Networks whose weight matrices are orbits."""

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral
from pindown.symmetry.layers import convolution_matrix, group_convolution, template_network
from tests.symmetry.layers.actions import polygon, skewed


@pytest.mark.parametrize("group", [cyclic(5), dihedral(4).permuting(), polygon(3)], ids=lambda g: g.name)
def test_template_networks_are_invariant_and_not_constant(group):
    rng = np.random.default_rng(0)
    templates = [rng.standard_normal(group.degree), rng.standard_normal(group.order)]
    net = template_network(templates, group, biases=[0.3, -0.1])
    X = rng.standard_normal((20, group.degree))
    for g in range(group.order):
        assert np.abs(net(group.act(g, X)) - net(X)).max() < 1e-10
    assert net(X).std() > 1e-3
    assert [layer.weight.shape[0] for layer in net.layers] == [group.order, group.order, 1]


def test_first_layer_is_a_correlation_by_fourier():
    w, x = np.random.default_rng(0).standard_normal((2, 8))
    values = np.fft.ifft(np.conj(np.fft.fft(w)) * np.fft.fft(x)).real
    net = template_network([w], cyclic(8))
    assert np.isclose(net(x)[0], np.maximum(values, 0).mean())
    assert np.isclose(net(-x)[0], np.maximum(-values, 0).mean()) and (values < 0).any()


@pytest.mark.parametrize("group", [dihedral(3), cyclic(5)], ids=lambda g: g.name)
def test_convolution_is_the_sum_over_quotients(group):
    """(f * w)(u) = sum over s of f(s) w(s^-1 u), written out."""
    rng = np.random.default_rng(2)
    f, w = rng.standard_normal((2, group.order))
    inverse = [next(h for h in range(group.order) if group.table[s, h] == 0) for s in range(group.order)]
    by_hand = [
        sum(f[s] * w[group.table[inverse[s], u]] for s in range(group.order)) for u in range(group.order)
    ]
    np.testing.assert_allclose(group_convolution(f, w, group), by_hand)
    np.testing.assert_allclose(convolution_matrix(w, group) @ f, by_hand)


def test_bad_templates_are_refused():
    group = dihedral(4).permuting()
    with pytest.raises(ValueError, match="templates is empty"):
        template_network([], group)
    with pytest.raises(ValueError, match="as many biases"):
        template_network([np.ones(4)], group, biases=[0.0, 1.0])
    with pytest.raises(ValueError, match="orthogonal"):
        template_network([np.ones(4)], group.acting_by(skewed(group, 0)))
    with pytest.raises(ValueError, match="acts here on vectors"):
        template_network([np.ones(5)], group)
    with pytest.raises(ValueError, match="has 8 weights"):
        convolution_matrix(np.ones(4), group)
    with pytest.raises(ValueError, match="8 values"):
        group_convolution(np.ones(4), np.ones(8), group)
    with pytest.raises(ValueError, match="finite numbers"):
        template_network([[np.nan] * 4], group)
