"""Gradient, proxy gradient and its three parts, each by two routes."""

from itertools import combinations, pairwise, product
from math import comb

import numpy as np
import pytest

from pindown.datasets.sparse_codes import (
    SparseCodingModel,
    gaussian_dictionary,
    hadamard_dictionary,
    near_dictionary,
)
from pindown.learn.sparse_coding import (
    criticality_bounds,
    dead_fraction,
    decomposition_of_gradient,
    loss_and_gradient,
    measure_criticality,
    proxy_gradient,
    reconstruction_loss,
    recovery_certificate,
    recovery_threshold,
)
from pindown.learn.sparse_coding.proxy_gradients import support_gradient, supports_with


def small(h=5, n=4, k=2, seed=1, distribution="two-point"):
    model = SparseCodingModel(gaussian_dictionary(n, h, seed), k, 0.7, 2.0, distribution)
    eps = np.random.default_rng(seed).normal(size=h)
    return model, near_dictionary(model.dictionary, 0.3, seed + 1), eps


@pytest.mark.parametrize("seed", range(5))
def test_gradient_is_what_torch_finds(seed):
    import torch

    rng = np.random.default_rng(seed)
    W, Y, eps = rng.normal(size=(6, 4)), rng.normal(size=(9, 4)), rng.normal(size=6)
    weights = torch.tensor(W, requires_grad=True)
    signals = torch.tensor(Y)
    codes = torch.relu(signals @ weights.T - torch.tensor(eps))
    loss = 0.5 * ((codes @ weights - signals) ** 2).sum(dim=1).mean()
    loss.backward()
    value, gradient = loss_and_gradient(W, Y, eps)
    assert value == pytest.approx(loss.item(), rel=1e-12)
    np.testing.assert_allclose(gradient, weights.grad.numpy(), atol=1e-12)


def brute_proxy(model, W, eps, i):
    """Enumerate supports and two-point values; indicators are membership, from the first formula."""
    total, h, k = np.zeros(model.n_features), model.n_atoms, model.sparsity
    for S in combinations(range(h), k):
        if i not in S:
            continue
        for values in product((model.low, model.high), repeat=k):
            y = model.dictionary[:, list(S)] @ np.array(values)
            error = sum((W[j] @ y - eps[j]) * W[j] for j in S) - y
            total += (W[i] @ y - eps[i]) * error + y * (W[i] @ error)
    return total / (comb(h, k) * 2**k)


@pytest.mark.parametrize(
    ("h", "n", "k"), [(5, 4, 2), (6, 3, 4), (6, 5, 3), (4, 4, 1), (3, 2, 3), (1, 2, 1)]
)
def test_closed_form_enumeration_and_parts_agree(h, n, k):
    model, W, eps = small(h, n, k)
    closed = proxy_gradient(model, W, eps)
    for i in range(h):
        brute = brute_proxy(model, W, eps, i)
        scale = max(1.0, np.abs(brute).max())
        np.testing.assert_allclose(closed[i], brute, rtol=0, atol=1e-12 * scale)
        parts = decomposition_of_gradient(model, W, eps, i)
        np.testing.assert_allclose(parts.gradient, brute, rtol=0, atol=1e-12 * scale)
        mean = sum(support_gradient(model, W, eps, S, i) for S in supports_with(model, i)) / comb(h, k)
        np.testing.assert_allclose(mean, brute, rtol=0, atol=1e-12 * scale)


def test_printed_index_set_of_the_appendix_leaves_terms_out():
    """Appendix: j, k beside i. Needed: j beside i, k other than j, k = i included."""
    model, W, eps = small(6, 4, 3)
    i, m1 = 0, model.mean
    truth = brute_proxy(model, W, eps, i)
    ours = decomposition_of_gradient(model, W, eps, i)
    difference = np.zeros(model.n_features)  # printed sum minus the needed one
    for S in supports_with(model, i):
        others = [j for j in S if j != i]
        B = W[i] @ model.dictionary
        printed = sum(B[k] * model.dictionary[:, j] for j in others for k in others)
        needed = sum(B[k] * model.dictionary[:, j] for j in others for k in S if k != j)
        difference += -2 * m1**2 * (printed - needed) / comb(6, 3)
    np.testing.assert_allclose(ours.gradient, truth, atol=1e-12)
    assert np.linalg.norm(ours.gradient + difference - truth) > 0.1


def test_orthogonal_dictionaries_have_loss_zero():
    A = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 7)))[0]
    Y, _ = SparseCodingModel(A, 3).sample(50)
    loss, gradient = loss_and_gradient(A.T, Y)
    assert loss == pytest.approx(0.0, abs=1e-25)
    assert np.abs(gradient).max() < 1e-12
    assert reconstruction_loss(A.T, Y) == loss


@pytest.mark.parametrize(("n", "k", "delta"), [(64, 1, 0.05), (256, 2, 0.02)])
def test_proxy_is_the_expected_gradient_when_certified(n, k, delta):
    """Inside the certified regime indicators are membership: the sample mean tends to the proxy."""
    model = SparseCodingModel(hadamard_dictionary(n), k, 1.0, 1.2)
    assert recovery_certificate(model, delta)
    W, eps = near_dictionary(model.dictionary, delta, 1), recovery_threshold(model, delta)
    units = [0, n // 2, n, 2 * n - 1]
    proxy = proxy_gradient(model, W, eps, units)
    runs = []
    for seed in range(16):
        Y, _ = model.sample(1000, seed)
        runs.append(loss_and_gradient(W, Y, eps)[1][units])
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / 4
    z = (mean - proxy) / error
    assert np.sqrt(np.mean(z**2)) < 1.35  # standard normal, up to Student's tails
    assert np.abs(mean - proxy).max() < 6 * error.max()


def test_outside_the_regime_the_proxy_is_something_else():
    model = SparseCodingModel(gaussian_dictionary(8, 16), 4, 1.0, 10.0)
    W, eps = near_dictionary(model.dictionary, 0.1, 1), recovery_threshold(model, 0.1)
    Y, _ = model.sample(4000)
    assert not recovery_certificate(model, 0.1)
    assert dead_fraction(W, Y, eps) == 1.0
    assert np.abs(loss_and_gradient(W, Y, eps)[1]).max() == 0.0
    assert np.abs(proxy_gradient(model, W, eps)).max() > 1.0


@pytest.mark.parametrize("seed", range(6))
def test_explicit_bounds_hold(seed):
    rng = np.random.default_rng(seed)
    n, delta = 8, float(rng.uniform(0, 0.5))
    model = SparseCodingModel(gaussian_dictionary(n, 7, seed), int(rng.integers(1, 5)), 0.5, 2.0)
    W = near_dictionary(model.dictionary, delta, seed)
    bounds = criticality_bounds(model, delta)
    # With m1 = 0 in the formulas and no threshold only the parts with the second moment are left.
    centred = _without_mean(model)
    for i in range(7):
        parts = decomposition_of_gradient(centred, W, 0.0, i)
        assert bounds.alpha_low - 1e-12 <= parts.alpha <= bounds.alpha_high + 1e-12
        assert np.linalg.norm(parts.rest) <= bounds.rest + 1e-12
        others = [j for j in range(7) if j != i]
        products = np.einsum("ij,ij->i", W, model.dictionary.T)
        a = model.inclusion(2) * products[i] * (products[others] @ W[others])
        b = model.inclusion(2) * (W[i] @ W[i]) * products[i] * model.dictionary[:, others].sum(axis=1)
        assert np.linalg.norm(a) <= bounds.weights_sum
        assert np.linalg.norm(b) <= bounds.atoms_sum


def _without_mean(model):
    class Centred(SparseCodingModel):
        mean = 0.0
        second_moment = model.second_moment

    return Centred(model.dictionary, model.sparsity, model.low, model.high)


def test_gradients_vanish_against_their_size_as_dictionaries_grow():
    """Coherence h^-1/2, one or two atoms, distance h^-1/2: the relative gradient falls."""
    relative = []
    for n in (16, 64, 256, 1024):
        model = SparseCodingModel(hadamard_dictionary(n), 2, 1.0, 1.2)
        delta = 0.5 / np.sqrt(2 * n)
        W = near_dictionary(model.dictionary, delta, n)
        found = measure_criticality(model, W, recovery_threshold(model, delta), [0, n])
        relative.append(found.relative)
        assert found.gradient_norm == pytest.approx(
            found.relative * found.inclusion * max(model.mean**2, model.second_moment)
        )
    assert all(later < earlier for earlier, later in pairwise(relative))
    assert relative[-1] < 0.3 * relative[0]


def test_far_from_the_dictionary_gradients_do_not_vanish():
    relative = []
    for n in (32, 128, 512):
        model = SparseCodingModel(hadamard_dictionary(n), 2, 1.0, 1.2)
        W = near_dictionary(model.dictionary, 0.5, n)
        relative.append(measure_criticality(model, W, 0.0, [0, n]).relative)
    assert min(relative) > 0.3


def test_bad_input_is_explained():
    model, W, eps = small()
    with pytest.raises(ValueError, match="a row per atom"):
        proxy_gradient(model, W[:3], 0.0)
    with pytest.raises(ValueError, match="in the support"):
        support_gradient(model, W, eps, [1, 2], 0)
    with pytest.raises(ValueError, match="too many"):
        decomposition_of_gradient(SparseCodingModel(np.eye(60), 30), np.eye(60), 0.0, 0)
    with pytest.raises(ValueError, match="delta"):
        criticality_bounds(model, 1.0)


def test_units_supports_and_shapes_that_do_not_fit_are_refused():
    model = SparseCodingModel(np.eye(4), 2)
    for unit in (-1, 4, 1.5):
        with pytest.raises(ValueError, match="units are 0 to 3"):
            proxy_gradient(model, np.eye(4), 0.0, [unit])
        with pytest.raises(ValueError, match="units are 0 to 3"):
            decomposition_of_gradient(model, np.eye(4), 0.0, unit)
    for support in ([1, 2], [0], [0, 0], [0, 1, 2]):
        with pytest.raises(ValueError, match="2 different atoms"):
            decomposition_of_gradient(model, np.eye(4), 0.0, 0, [support])
    with pytest.raises(ValueError, match="at least one support"):
        decomposition_of_gradient(model, np.eye(4), 0.0, 0, [])
    for W, Y in ((np.ones((3, 4)), np.ones((2, 5))), (np.ones((3, 4)), np.ones((0, 4)))):
        with pytest.raises(ValueError, match="must match"):
            loss_and_gradient(W, Y)
    with pytest.raises(ValueError, match="threshold must be one number, or 3"):
        loss_and_gradient(np.ones((3, 4)), np.ones((2, 4)), np.ones(5))


def largest(kind, i, j, delta, mu):
    """What inner products can be at most, weights within delta of atoms of coherence mu."""
    if kind == "WA":
        return 1 + delta if i == j else delta + mu
    return (1 + delta) ** 2 if i == j else delta**2 + 2 * delta + mu


@pytest.mark.parametrize("delta", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("dictionary", [gaussian_dictionary(30, 40, 3), np.eye(40)], ids=["any", "axes"])
def test_criticality_bounds_are_their_terms_one_by_one(dictionary, delta):
    """Every term of the parts at its largest, with the chance that its atoms are in the support."""
    model = SparseCodingModel(dictionary, 6, 0.5, 2.0)
    h, m2, mu, i = model.n_atoms, model.second_moment, model.coherence, 0
    found, others = criticality_bounds(model, delta), range(1, model.n_atoms)

    def top(kind, a, b):
        return largest(kind, a, b, delta, mu)

    def chance(*atoms):
        return model.inclusion(len(set(atoms)))

    rest = sum(chance(i, j) * 2 * top("WA", i, j) for j in others)
    alpha = sum(chance(i, k) * top("WA", i, k) ** 2 for k in range(h))
    for j in others:
        for k in range(h):
            rest += chance(i, j, k) * top("WA", i, k) * top("WA", j, k) * (1 + delta)
            rest += chance(i, j, k) * top("WW", i, k) * top("WA", k, j)
    slack = h**2 / ((h - 1) * (h - 2))
    assert m2 * rest <= found.rest * (1 + 1e-12) and found.rest <= slack * m2 * rest
    assert m2 * alpha <= found.alpha_high * (1 + 1e-12) and found.alpha_high <= slack * m2 * alpha
    assert found.alpha_low == pytest.approx(chance(i) * m2 * (1 - delta) ** 2)
    squares = sum(top("WW", j, k) for j in others for k in others)
    a = model.inclusion(2) * top("WA", i, i) ** 2 * np.sqrt(squares)
    assert a <= found.weights_sum * (1 + 1e-12) and found.weights_sum <= slack * a
    squares = sum(1.0 if j == k else mu for j in others for k in others)
    b = model.inclusion(2) * (1 + delta) ** 3 * np.sqrt(squares)
    assert b <= found.atoms_sum * (1 + 1e-12) and found.atoms_sum <= slack * b


def test_measured_criticality_by_hand():
    model, W, eps = small(6, 4, 2)
    units = [1, 4]
    G = np.array([brute_proxy(model, W, eps, i) for i in units])
    found = measure_criticality(model, W, eps, units)
    norms = np.linalg.norm(G, axis=1)
    assert found.inclusion == pytest.approx(2 / 6)
    assert found.gradient_norm == pytest.approx(norms.mean())
    size = max(model.mean**2, model.second_moment)
    assert found.relative == pytest.approx(norms.mean() / (2 / 6 * size))
    way = model.dictionary.T[units] - W[units]
    cosines = [-g @ v / np.linalg.norm(g) / np.linalg.norm(v) for g, v in zip(G, way, strict=True)]
    assert found.cosine == pytest.approx(np.mean(cosines))


def test_parts_of_the_gradient_by_loops():
    """alpha and beta term by term, as printed; the rest is what is left of the gradient."""
    model, W, eps = small(5, 4, 3)
    m1, m2, A, i = model.mean, model.second_moment, model.dictionary, 2
    alpha = beta = 0.0
    for S in supports_with(model, i):
        WA = {(j, k): W[j] @ A[:, k] for j in S for k in S}
        WW = {(j, k): W[j] @ W[k] for j in S for k in S}
        alpha += eps[i] ** 2 + sum(m2 * WA[i, k] ** 2 - 2 * m1 * eps[i] * WA[i, k] for k in S)
        alpha += sum(m1**2 * WA[i, k] * WA[i, m] for k in S for m in S if k != m)
        beta += 2 * m2 * WA[i, i] - m1 * eps[i]
        beta += sum(2 * m1**2 * WA[i, k] for k in S if k != i)
        beta += sum(m1 * eps[j] * WW[i, j] - m2 * WW[i, j] * WA[j, i] for j in S)
        beta -= sum(m1**2 * WW[i, j] * WA[j, m] for j in S for m in S if m != i)
    found = decomposition_of_gradient(model, W, eps, i)
    assert found.alpha == pytest.approx(alpha / comb(5, 3))
    assert found.beta == pytest.approx(beta / comb(5, 3))
    left = brute_proxy(model, W, eps, i) - found.alpha * W[i] + found.beta * A[:, i]
    np.testing.assert_allclose(found.rest, left, atol=1e-12)
