"""The tangent kernel of finite networks: one number by several routes."""

import itertools
import time

import numpy as np
import pytest
import torch
from torch import nn

from pindown import ReluNetwork
from pindown.bias.tangent_kernel import empirical_ntk, tangent_network

torch.set_num_threads(1)


def random_network(widths, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [
            (rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m))
            for n, m in itertools.pairwise(widths)
        ]
    )


def finite_differences(net, X, step=1e-6):
    """Return the Jacobian (n, k, parameters) by central differences, weights then bias of each layer."""
    columns = []
    for i, (W, b) in enumerate(net.layers):
        for part, array in enumerate((W, b)):
            for index in np.ndindex(array.shape):
                ends = []
                for sign in (1.0, -1.0):
                    layers = [[np.array(V), np.array(c)] for V, c in net.layers]
                    layers[i][part][index] += sign * step
                    ends.append(ReluNetwork.from_layers(layers)(X))
                columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("widths", [(3, 2), (3, 5, 1), (2, 4, 3, 2), (2, 3, 3, 3, 1)])
def test_closed_form_is_the_gram_matrix_of_derivatives(widths):
    rng = np.random.default_rng(1)
    net, X, Z = random_network(widths), rng.standard_normal((5, widths[0])), None
    Z = rng.standard_normal((4, widths[0]))
    full = np.einsum("iap,jbp->ijab", finite_differences(net, X), finite_differences(net, Z))
    own = np.diagonal(full, axis1=2, axis2=3)
    np.testing.assert_allclose(empirical_ntk(net, X, Z, outputs="full"), full, atol=1e-7)
    np.testing.assert_allclose(empirical_ntk(net, X, Z, outputs="each"), own, atol=1e-7)
    np.testing.assert_allclose(empirical_ntk(net, X, Z), own.mean(axis=-1), atol=1e-7)


@pytest.mark.parametrize("outputs", ["mean", "each", "full"])
@pytest.mark.parametrize("biases", [True, False])
def test_all_methods_agree(outputs, biases):
    rng = np.random.default_rng(2)
    net, X, Z = random_network((4, 6, 5, 3)), rng.standard_normal((7, 4)), rng.standard_normal((3, 4))
    for other in (None, Z):
        closed = empirical_ntk(net, X, other, outputs=outputs, biases=biases)
        # 20 kB force blocks of two or three rows, of which the last is shorter.
        for method, memory in (("jacobian", 2e4), ("jacobian", 2**30), ("products", 2**30)):
            kernel = empirical_ntk(
                net, X, other, outputs=outputs, biases=biases, method=method, memory=memory
            )
            np.testing.assert_allclose(kernel, closed, rtol=0, atol=1e-12)


def test_a_linear_model_has_the_kernel_of_inner_products():
    X = np.random.default_rng(0).standard_normal((6, 3))
    net = ReluNetwork.from_layers([([[1.0, -2.0, 0.5]], [3.0])])
    np.testing.assert_allclose(empirical_ntk(net, X), X @ X.T + 1, atol=1e-14)
    np.testing.assert_allclose(empirical_ntk(net, X, biases=False), X @ X.T, atol=1e-14)


def test_two_layers_by_the_formula_of_sums():
    rng = np.random.default_rng(0)
    m, W, v, X = 40, rng.standard_normal((40, 3)), rng.standard_normal(40), rng.standard_normal((6, 3))
    net = tangent_network([3, m, 1])
    net[0].weight.data, net[2].weight.data = torch.as_tensor(W), torch.as_tensor(v[None])
    wanted = np.zeros((6, 6))
    for i, j in np.ndindex(6, 6):
        a, b = W @ X[i], W @ X[j]
        both = (a > 0) & (b > 0)
        wanted[i, j] = np.mean(a * b * both) + X[i] @ X[j] * np.mean(v**2 * both)
    np.testing.assert_allclose(empirical_ntk(net, X), wanted, atol=1e-12)
    # Without the root of the width outside of the parameters, as printed, the kernel grows with it.
    plain = ReluNetwork.from_layers([(W, np.zeros(m)), (v[None], [0.0])])
    np.testing.assert_allclose(empirical_ntk(plain, X, biases=False), m * wanted, atol=1e-10)


def test_one_small_step_of_gradient_descent_moves_the_outputs_by_the_kernel():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1)).double()
    X, y = torch.randn(8, 3, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    K = empirical_ntk(module, X)
    f0 = module(X)[:, 0]
    (0.5 * torch.sum((f0 - y) ** 2)).backward()
    errors = []
    for rate in (1e-4, 1e-5):
        moved = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1)).double()
        moved.load_state_dict(module.state_dict())
        with torch.no_grad():
            for new, old in zip(moved.parameters(), module.parameters(), strict=True):
                new.sub_(rate * old.grad)
            velocity = (moved(X)[:, 0] - f0) / rate
        wanted = -K @ (f0 - y).detach().numpy()
        errors.append(np.linalg.norm(velocity.numpy() - wanted) / np.linalg.norm(wanted))
    assert errors[0] < 1e-2 and errors[1] == pytest.approx(errors[0] / 10, rel=0.1)
    # The printed flow has lost its minus sign, and would move the outputs the other way.
    assert np.linalg.norm(velocity.numpy() + wanted) > np.linalg.norm(wanted)


def test_kernels_are_symmetric_and_positive():
    net, X = random_network((4, 30, 20, 3)), np.random.default_rng(0).standard_normal((25, 4))
    K = empirical_ntk(net, X)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > -1e-10 * np.trace(K)


def test_permuting_units_changes_nothing_and_rescaling_them_does():
    net, X = random_network((3, 6, 1)), np.random.default_rng(0).standard_normal((5, 3))
    (W, b), (v, c) = net.layers
    order = np.random.default_rng(1).permutation(6)
    same = ReluNetwork.from_layers([(W[order], b[order]), (v[:, order], c)])
    np.testing.assert_allclose(empirical_ntk(same, X), empirical_ntk(net, X), rtol=1e-12)
    scaled = ReluNetwork.from_layers([(3 * W, 3 * b), (v / 3, c)])  # the same function
    assert not np.allclose(empirical_ntk(scaled, X), empirical_ntk(net, X), rtol=0.1)


def test_modules_of_every_kind():
    """Frozen, shared, nested and unusual layers give what Jacobians of the whole module give."""
    torch.manual_seed(0)
    X = np.random.default_rng(0).standard_normal((4, 3))
    frozen = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    frozen[0].bias.requires_grad_(False)
    frozen[2].weight.requires_grad_(False)
    tied = nn.Linear(3, 3)
    modules = [
        frozen,
        nn.Sequential(tied, nn.ReLU(), tied, nn.ReLU(), nn.Linear(3, 1)),
        nn.Sequential(
            nn.Flatten(), nn.Sequential(nn.Linear(3, 4), nn.ReLU()), nn.Linear(4, 1, bias=False)
        ),
        nn.Sequential(
            nn.Linear(3, 4), nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Identity()
        ).eval(),
        nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).eval(),
        tangent_network([3, 8, 8, 2], bias_std=0.5),
        tangent_network([3, 8, 1], antisymmetric=True),
    ]
    for module in (m.double() for m in modules):
        J = [
            torch.cat(
                [
                    g.reshape(-1) if g is not None else torch.zeros(p.numel(), dtype=torch.float64)
                    for p, g in zip(
                        trained,
                        torch.autograd.grad(out, trained, allow_unused=True, retain_graph=True),
                        strict=True,
                    )
                ]
            )
            for trained in [[p for p in module.parameters() if p.requires_grad]]
            for row in module(torch.as_tensor(X))
            for out in row
        ]
        J = torch.stack(J).numpy().reshape(4, -1, J[0].numel())
        wanted = np.einsum("iap,jap->ij", J, J) / J.shape[1]
        np.testing.assert_allclose(empirical_ntk(module, X), wanted, atol=1e-10)


def test_a_convolution_is_differentiated_and_its_unrolled_form_is_refused():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 6 * 6, 2)).double()
    X = np.random.default_rng(0).standard_normal((3, 1, 8, 8))
    jacobian, products = (empirical_ntk(module, X, method=m) for m in ("jacobian", "products"))
    np.testing.assert_allclose(jacobian, products, rtol=1e-10)
    big = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 2)).double()
    net = ReluNetwork.from_torch(big, (1, 28, 28))
    with pytest.raises(ValueError, match=r"layer 1 is stored sparse.*torch module"):
        empirical_ntk(net, np.zeros((2, 784)))


def test_images_and_one_row():
    module = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    X = np.random.default_rng(0).standard_normal((2, 3, 2, 2))
    np.testing.assert_allclose(empirical_ntk(module, X), empirical_ntk(module, X, method="jacobian"))
    assert empirical_ntk(module, X[:1]).shape == (1, 1)


def test_rows_with_several_axes_without_flattening():
    # A linear layer acts on the last axis: six outputs per row, of which the kernel is the mean.
    module, X = (
        nn.Sequential(nn.Linear(2, 3)).double(),
        np.random.default_rng(0).standard_normal((4, 2, 2)),
    )
    K = empirical_ntk(module, X)
    wanted = np.mean([X[:, t] @ X[:, t].T + 1 for t in range(2)], axis=0)
    np.testing.assert_allclose(K, wanted, atol=1e-12)
    with pytest.raises(ValueError, match="inputs of shape"):
        empirical_ntk(module, X, method="closed")


@pytest.mark.slow
def test_the_closed_form_is_much_cheaper_than_jacobians():
    rng = np.random.default_rng(0)
    for hidden, factor in (((512,), 20), ((256, 256), 5)):
        net, X = random_network((784, *hidden, 1)), rng.standard_normal((300, 784))
        empirical_ntk(net, X[:2], method="jacobian")
        seconds, kernels = [], []
        for method in ("closed", "jacobian"):
            start = time.process_time()
            kernels.append(empirical_ntk(net, X, method=method, memory=2**33))
            seconds.append(time.process_time() - start)
        assert seconds[1] > factor * seconds[0]
        np.testing.assert_allclose(kernels[0], kernels[1], rtol=0, atol=1e-6 * np.abs(kernels[0]).max())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X1": [[1.0, np.nan, 0.0]]}, ValueError, "X1 must be finite; 1 of 1 rows"),
        ({"X1": [1.0, 2.0, 3.0]}, ValueError, r"one input x is x\[None\]"),
        ({"X1": np.zeros((0, 3))}, ValueError, "empty"),
        ({"X1": np.zeros((2, 4))}, ValueError, r"inputs of shape \(n, 3\)"),
        ({"X2": np.zeros((2, 4))}, ValueError, "rows of X1 and X2 must have one shape"),
        ({"X1": [["a", "b", "c"]]}, TypeError, "real numbers"),
        ({"outputs": "sum"}, ValueError, "'mean', 'each', 'full'"),
        ({"method": "fast"}, ValueError, "method must be"),
        ({"memory": -1}, ValueError, "memory must be"),
        ({"module_or_net": np.eye(3)}, TypeError, "ReluNetwork or a torch.nn.Module; got ndarray"),
        ({"module_or_net": nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))}, ValueError, "eval()"),
        ({"module_or_net": nn.Conv2d(1, 1, 2)}, ValueError, "row by row"),
        (
            {"module_or_net": nn.PReLU(), "method": "closed"},
            ValueError,
            "no closed form is known for PReLU",
        ),
        ({"module_or_net": nn.Tanh()}, ValueError, "no parameter is trained"),
        (
            {"module_or_net": nn.Linear(3, 1).requires_grad_(False)},
            ValueError,
            "no parameter is trained",
        ),
        ({"module_or_net": nn.LSTM(3, 2)}, (TypeError, ValueError), "one tensor|row by row"),
    ],
)
def test_bad_input_is_refused(change, error, message):
    given = {"module_or_net": random_network((3, 4, 1)), "X1": np.ones((2, 3)), "X2": None, **change}
    with pytest.raises(error, match=message):
        empirical_ntk(**given)


def test_weights_that_are_not_finite_are_refused():
    for module in (nn.Linear(3, 1), nn.Sequential(nn.Linear(3, 1), nn.Tanh())):
        next(module.parameters()).data[0, 0] = float("nan")
        with pytest.raises(ValueError, match=r"NaN or infinity|not finite"):
            empirical_ntk(module, np.ones((2, 3)))


def test_layers_that_share_a_matrix_have_one_set_of_parameters():
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    second.weight = first.weight
    module = torch.nn.Sequential(first, torch.nn.ReLU(), second)
    X = np.random.default_rng(4).standard_normal((5, 4))
    by_derivatives = empirical_ntk(module, X, method="jacobian")
    np.testing.assert_allclose(empirical_ntk(module, X), by_derivatives, rtol=1e-12)
    with pytest.raises(ValueError, match="no closed form is known"):
        empirical_ntk(module, X, method="closed")


def test_a_kernel_that_overflows_is_refused_without_a_warning():
    net = ReluNetwork.from_layers([(np.eye(2), np.zeros(2)), (np.ones((1, 2)), [0.0])])
    with pytest.raises(ValueError, match="overflows float64"):
        empirical_ntk(net, [[1e200, 1e200]])
    with pytest.raises(ValueError, match="overflows float64"):
        empirical_ntk(net, [[1e200, 1e200]], method="jacobian")


@pytest.mark.parametrize("outputs", ["mean", "each", "full"])
def test_the_closed_form_in_blocks_of_rows(outputs):
    rng = np.random.default_rng(6)
    layers = [(rng.standard_normal((7, 3)), np.ones(7)), (rng.standard_normal((2, 7)), np.zeros(2))]
    net, X = ReluNetwork.from_layers(layers), rng.standard_normal((150, 3))
    for Z in (None, X[:9] + 1):
        whole, blocks = (empirical_ntk(net, X, Z, outputs=outputs, memory=m) for m in (2**30, 1.0))
        np.testing.assert_allclose(blocks, whole, rtol=1e-12, atol=1e-12)


def test_an_antisymmetric_network_starts_at_zero_with_the_kernel_of_its_half():
    X = np.random.default_rng(3).standard_normal((4, 3))
    both = tangent_network([3, 6, 1], antisymmetric=True, random_state=2)
    assert not both(torch.as_tensor(X)).detach().any()
    alone = tangent_network([3, 6, 1], random_state=2)
    np.testing.assert_allclose(empirical_ntk(both, X), empirical_ntk(alone, X))
