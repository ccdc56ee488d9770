"""Support recovery: none missed inside the certified regime, failures outside it."""

import numpy as np
import pytest

from pindown.datasets.sparse_codes import (
    SparseCodingModel,
    gaussian_dictionary,
    hadamard_dictionary,
    perturbed,
)
from pindown.learn.sparse_coding import (
    certify_weights,
    recover_support,
    recovery_certificate,
    recovery_threshold,
)
from pindown.learn.sparse_coding.recovery import exponents_recover

CERTIFIED = [(64, 1, 1.2, 0.05), (256, 2, 1.2, 0.02), (256, 1, 2.0, 0.1), (512, 2, 1.2, 0.01)]


@pytest.mark.parametrize(("n", "k", "high", "delta"), CERTIFIED)
@pytest.mark.parametrize("distribution", ["uniform", "two-point"])
def test_no_error_inside_the_certified_regime(n, k, high, delta, distribution):
    model = SparseCodingModel(hadamard_dictionary(n), k, 1.0, high, distribution)
    certificate = recovery_certificate(model, delta)
    assert certificate
    assert certificate.kind == "exact"
    assert certificate.margin >= 0
    for seed in range(3):
        Y, X = model.sample(300, seed)
        W = perturbed(model.dictionary, delta, seed)
        found = recover_support(W, Y, recovery_threshold(model, delta))
        assert (found == (X > 0)).all()


def test_recovery_fails_outside():
    """The same dictionary with more atoms at a time: the certificate says no, and errors come."""
    errors = {}
    for k in (2, 8, 15):
        model = SparseCodingModel(hadamard_dictionary(512), k, 1.0, 1.2)
        Y, X = model.sample(200, 1)
        W = perturbed(model.dictionary, 0.01, 2)
        found = recover_support(W, Y, recovery_threshold(model, 0.01))
        errors[k] = bool(recovery_certificate(model, 0.01)), int((found != (X > 0)).sum())
    assert errors[2] == (True, 0)
    assert not errors[8][0]
    assert not errors[15][0]
    assert errors[15][1] > 0.9 * 15 * 200  # nearly every atom is missed


def test_probability_printed_is_that_of_one_unit():
    """Skewed entries: the bound per unit holds, and all units together exceed it."""
    k, q = 12, 0.25  # entries 0 or 1, mostly 0: the mean is below half of the largest entry
    rng = np.random.default_rng(0)
    m = 1 / np.sqrt(k + 1)
    outside = 400
    x = (rng.random((4000, k)) < q).astype(float)
    bound = np.exp(-2 * k * q**2)
    # Units outside share k atoms at coherence m, each with independent signs of the rest: here all see
    # the sum of the entries of their own k atoms.
    sums = (rng.random((4000, outside, k)) < q).sum(axis=2)
    on = m * sums > 2 * q * k * m
    assert on.mean() <= bound
    assert (m * x.sum(axis=1) > 2 * q * k * m).mean() <= bound
    assert on.any(axis=1).mean() > 1.5 * bound  # some unit is on more often than printed
    assert on.any(axis=1).mean() <= min(1.0, outside * bound)


@pytest.mark.parametrize("seed", range(20))
def test_weights_alone_certify_for_every_dictionary_near(seed):
    rng = np.random.default_rng(seed)
    n = 64
    model = SparseCodingModel(hadamard_dictionary(n), 1, 1.0, 1.5)
    W = perturbed(model.dictionary, 0.02, seed) * rng.uniform(0.9, 1.1, (2 * n, 1))
    certificate = certify_weights(W, 0.45, sparsity=1, low=1.0, high=1.5, delta=0.05)
    assert certificate.kind == "exact"
    near = perturbed(W.T, 0.05, seed + 1)  # atoms at distance 0.05 of the weights, norms not one
    X = SparseCodingModel(np.eye(2 * n), 1, 1.0, 1.5).sample(300, seed).X
    assert (recover_support(W, X @ near, 0.45) == (X > 0)).all()


def test_certificates_print_what_they_prove():
    model = SparseCodingModel(gaussian_dictionary(20, 40), 3)
    assert "not certified" in str(recovery_certificate(model, 0.1))
    assert recovery_certificate(model, 0.1).kind == "heuristic"
    assert recovery_certificate(model, 1.0).required == np.inf
    assert not certify_weights(np.zeros((3, 2)), 0.1, sparsity=1, low=1.0, high=1.0)
    assert (
        certify_weights(np.eye(3), 0.0, sparsity=1, low=1.0, high=1.0, delta=0.1).kind == "probability"
    )


def test_exponents():
    assert exponents_recover(0.1, 0.1, 0.5)
    assert not exponents_recover(0.1, 0.4, 0.5)
    assert not exponents_recover(0.1, 0.0, 0.5)


def test_bad_input_is_explained():
    model = SparseCodingModel(np.eye(3), 1)
    for delta in (-0.1, np.nan, "small", None):
        with pytest.raises(ValueError, match="delta must be"):
            recovery_certificate(model, delta)
    with pytest.raises(ValueError, match="must match"):
        recover_support(np.eye(3), np.ones((2, 4)), 0.1)
    with pytest.raises(ValueError, match="sparsity"):
        certify_weights(np.eye(3), 0.1, sparsity=0, low=1.0, high=1.0)


def test_certificates_of_impossible_ranges_are_refused():
    for low, high in ((2.0, 1.0), (float("nan"), 1.0), (-1.0, 1.0)):
        with pytest.raises(ValueError, match="0 <= low <= high"):
            certify_weights(np.eye(3), 0.1, sparsity=1, low=low, high=high)
    for W in (np.ones(3), np.full((2, 2), np.nan), np.zeros((0, 2))):
        with pytest.raises(ValueError, match="finite matrix"):
            certify_weights(W, 0.1, sparsity=1, low=1.0, high=1.0)
