"""One filter, many windows: the network against torch's convolution and against the definition."""

import numpy as np
import pytest

from pindown.circuits.blocks import single_filter_network, window_matrices


@pytest.mark.parametrize("leak", [0.0, 0.1, 1.0, 2.5])
@pytest.mark.parametrize(
    ("n", "size", "stride"), [(7, 3, 1), (8, 2, 2), (9, 4, 3), (5, 5, 1), (4, 1, 1)]
)
def test_equals_a_convolution_with_average_pooling(n, size, stride, leak):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(n)
    w, X = rng.standard_normal(size), rng.standard_normal((20, n))
    net = single_filter_network(w, window_matrices(n, size, stride=stride), leak=leak)
    y = torch.nn.functional.conv1d(
        torch.from_numpy(X)[:, None], torch.from_numpy(w)[None, None], stride=stride
    )
    expected = torch.nn.functional.leaky_relu(y, leak).mean(dim=(1, 2)).numpy()
    np.testing.assert_allclose(net(X).ravel(), expected, atol=1e-12)
    windows = (n - size) // stride + 1
    assert net.size == (windows if leak == 0 else 2 * windows)


@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_any_matrices_by_the_definition(leak):
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((4, 3, 5)), rng.standard_normal(3)
    net = single_filter_network(w, A, leak=leak)
    for x in rng.standard_normal((10, 5)):
        y = [float(w @ (M @ x)) for M in A]
        expected = np.mean([t if t >= 0 else leak * t for t in y])
        assert net(x).item() == pytest.approx(expected, abs=1e-12)


def test_one_gate_is_the_identity_case():
    w = np.array([1.0, -2.0, 0.5])
    net = single_filter_network(w, np.eye(3)[None])
    X = np.random.default_rng(0).standard_normal((30, 3))
    np.testing.assert_allclose(net(X).ravel(), np.maximum(X @ w, 0), atol=1e-12)
    assert net.size == 1


def test_windows_are_selections():
    A = window_matrices(9, 4, stride=2)
    assert A.shape == (3, 4, 9)
    assert (A.sum(axis=2) == 1).all() and (A.sum(axis=1) <= 1).all()


def test_bad_input():
    with pytest.raises(ValueError, match="filter"):
        single_filter_network([1, 2], np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="filter"):
        single_filter_network([], np.ones((2, 0, 4)))
    for leak in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="leak"):
            single_filter_network([1], np.ones((1, 1, 1)), leak=leak)
    with pytest.raises(ValueError, match="finite"):
        single_filter_network([np.nan], np.ones((1, 1, 1)))
    for arguments in ((3, 4, 1), (3, 0, 1), (3, 2, 0)):
        with pytest.raises(ValueError, match=r"kernel_size|stride"):
            window_matrices(*arguments[:2], stride=arguments[2])
