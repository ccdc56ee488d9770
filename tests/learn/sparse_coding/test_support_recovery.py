"""Support recovery: none missed inside the certified regime, failures outside it."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.datasets.sparse_codes import (
    SparseCodingModel,
    gaussian_dictionary,
    hadamard_dictionary,
    near_dictionary,
)
from pindown.learn.sparse_coding import (
    certify_weights,
    recover_support,
    recovery_certificate,
    recovery_threshold,
)
from pindown.learn.sparse_coding.support_recovery import exponents_recover

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
        W = near_dictionary(model.dictionary, delta, seed)
        found = recover_support(W, Y, recovery_threshold(model, delta))
        assert (found == (X > 0)).all()


def test_recovery_fails_outside():
    """The same dictionary with more atoms at a time: the certificate says no, and errors come."""
    errors = {}
    for k in (2, 8, 15):
        model = SparseCodingModel(hadamard_dictionary(512), k, 1.0, 1.2)
        Y, X = model.sample(200, 1)
        W = near_dictionary(model.dictionary, 0.01, 2)
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

    class Skewed(SparseCodingModel):
        """Entries 0 or 1, mostly 0; the model's own distributions are symmetric."""

        mean = q

    n_atoms = outside + k
    ours = recovery_certificate(Skewed(np.eye(n_atoms), k, low=0.0, high=1.0), 0.01)
    assert ours.false_positive == pytest.approx(bound)
    assert on.mean() <= ours.false_positive
    assert on.any(axis=1).mean() <= ours.any_false_positive == min(1.0, outside * ours.false_positive)
    symmetric = recovery_certificate(SparseCodingModel(np.eye(n_atoms), k, low=0.0, high=1.0), 0.01)
    assert symmetric.any_false_positive == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_weights_alone_certify_for_every_dictionary_near(seed):
    rng = np.random.default_rng(seed)
    n = 64
    model = SparseCodingModel(hadamard_dictionary(n), 1, 1.0, 1.5)
    W = near_dictionary(model.dictionary, 0.02, seed) * rng.uniform(0.9, 1.1, (2 * n, 1))
    certificate = certify_weights(W, 0.45, sparsity=1, low=1.0, high=1.5, delta=0.05)
    assert certificate.kind == "exact"
    near = near_dictionary(W.T, 0.05, seed + 1)  # atoms at distance 0.05 of the weights, norms not one
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


def leaning_dictionary(k, lean):
    """The first atom is at inner product ``lean`` with all others, which are nearly orthogonal."""
    A = np.zeros((k + 1, k + 1))
    A[0] = lean
    A[0, 0] = 1.0
    A[np.arange(1, k + 1), np.arange(1, k + 1)] = np.sqrt(1 - lean**2)
    return A


@pytest.mark.parametrize("distribution", ["uniform", "two-point"])
def test_the_certificate_is_sharp_in_the_worst_case(distribution):
    """All others pull an atom down and are at their largest: just beyond the condition it is missed."""
    k, a, b = 60, 1.0, 1.2
    needed = (b + (a + b)) * k  # a >= (b + 2 m1) k mu with m1 = (a + b) / 2
    x = np.full(k + 1, b)
    x[[0, k]] = a, 0.0
    for share, certified in ((0.999, True), (1.02, False)):
        model = SparseCodingModel(leaning_dictionary(k, -share * a / needed), k, a, b, distribution)
        certificate = recovery_certificate(model, 0.0)
        assert bool(certificate) is certified
        assert certificate.required == pytest.approx(share * a)
        found = recover_support(model.dictionary.T, model.dictionary @ x, certificate.threshold)[0]
        assert found[0] == certified
        # The weights alone know that only k - 1 others can pull: nothing is left in between.
        alone = certify_weights(model.dictionary.T, certificate.threshold, sparsity=k, low=a, high=b)
        assert alone.required == pytest.approx(share * (1 - b / (b + a + b) / k), rel=1e-9)


def test_the_threshold_keeps_a_unit_off_that_all_atoms_push():
    k, a, b = 30, 0.1, 1.0
    model = SparseCodingModel(leaning_dictionary(k, 0.01), k, a, b)
    x = np.append(0.0, np.full(k, b))
    eps = recovery_threshold(model, 0.0)
    assert not recover_support(model.dictionary.T, model.dictionary @ x, eps)[0, 0]
    assert recover_support(model.dictionary.T, model.dictionary @ x, 0.9 * eps)[0, 0]
    assert recovery_threshold(model, 0.03) == pytest.approx(4 * eps)  # 0.03 + 0.01 for 0.01


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_required_entries_by_the_two_ends_of_what_a_unit_sees(delta):
    """Inside, a unit sees a (1 - delta) less what k others take; that must pass the threshold."""
    model = SparseCodingModel(hadamard_dictionary(64), 3, 0.5, 2.0)
    taken = model.high * model.sparsity * (delta + model.coherence)
    certificate = recovery_certificate(model, delta)
    assert certificate.threshold == recovery_threshold(model, delta)
    assert certificate.required * (1 - delta) == pytest.approx(taken + certificate.threshold)
    assert certificate.margin == pytest.approx(0.5 - certificate.required)


def test_probability_of_false_positives_is_hoeffdings():
    from scipy.stats import binom

    class Skewed(SparseCodingModel):
        mean = 0.25  # entries 0 or 1

    k, h = 12, 20
    certificate = recovery_certificate(Skewed(np.eye(h), k, 0.0, 1.0), 0.0)
    exact = binom.sf(2 * 0.25 * k, k, 0.25)  # the sum of k entries above twice its mean
    assert certificate.false_positive == pytest.approx(np.exp(-2 * (0.25 * k) ** 2 / k))
    assert exact <= certificate.false_positive
    assert certificate.any_false_positive == pytest.approx(min(1, (h - k) * certificate.false_positive))


def test_weights_alone_are_certified_up_to_the_worst_dictionary_within_delta():
    """The atom shrinks towards zero and the others lean on the unit by delta: nothing is left over."""
    n, delta, a, b, eps, norm = 3, 0.2, 1.0, 1.5, 0.3, 1.2
    W = norm * np.eye(n)
    for k in (1, 2):
        certificate = certify_weights(W, eps, sparsity=k, low=a, high=b, delta=delta)
        A = W.T.copy()
        A[0, 0] -= delta
        A[0, 1] -= delta
        worst = np.array([1.0, b * (k > 1), 0.0])
        for factor, on in ((1.001, True), (0.999, False)):
            worst[0] = factor * certificate.required
            assert recover_support(W, A @ worst, eps)[0, 0] == on
        A[0, 1] += 2 * delta  # and now it pushes a unit that should be off
        push = (A @ np.array([0.0, b, 0.0]))[0] * norm
        assert push == pytest.approx(b * norm * delta)
    silent = [certify_weights(W, e, sparsity=1, low=a, high=b, delta=delta).false_positive
              for e in (0.999 * push, 1.001 * push)]  # fmt: skip
    assert silent == [1.0, 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_required_entries_are_rounded_up(seed):
    """The least certified entry is enough in rational arithmetic, and within 1e-13 of the least."""
    rng = np.random.default_rng(seed)
    W = rng.integers(-9, 10, (4, 5)) / 7.0 + 10 * np.eye(4, 5)
    found = certify_weights(W, 0.3, sparsity=2, low=1.0, high=1.5)
    rows = [[Fraction(v) for v in row] for row in W.tolist()]
    inner = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in rows] for u in rows]
    exact = max(
        (Fraction(0.3) + Fraction(1.5) * max(abs(inner[i][j]) for j in range(4) if j != i)) / inner[i][i]
        for i in range(4)
    )
    assert exact <= found.required <= exact * (1 + Fraction(1, 10**13))
