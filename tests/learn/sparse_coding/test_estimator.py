"""The transformer: scikit-learn's rules, recovery near the dictionary, guarantee, bad input."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.datasets.sparse_codes import (
    SparseCodingModel,
    gaussian_dictionary,
    hadamard_dictionary,
    near_dictionary,
)
from pindown.learn.sparse_coding import (
    SparseCodingAutoencoder,
    certify_weights,
    dictionary_error,
    gradient_descent,
    recovery_threshold,
)
from pindown.learn.sparse_coding.gradient_descent import descend


@parametrize_with_checks([SparseCodingAutoencoder()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def model_of(n=32, k=1):
    return SparseCodingModel(hadamard_dictionary(n), k, 1.0, 1.2)


@pytest.mark.parametrize("seed", range(2))
def test_descent_comes_nearer_to_the_dictionary(seed):
    model = model_of()
    Y, _ = model.sample(300, seed)
    start = near_dictionary(model.dictionary, 0.5, seed)
    coder = SparseCodingAutoencoder(threshold=0.15, init=start, max_iter=50).fit(Y)
    before, after = (dictionary_error(W, model.dictionary) for W in (start, coder.components_))
    assert after.direction < 0.5 * before.direction
    assert not after.worse_than_zero
    assert (np.diff(coder.losses_) <= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_codes_have_the_true_support_when_the_guarantee_says_so(seed):
    model = model_of(64)
    Y, X = model.sample(400, seed)
    coder = SparseCodingAutoencoder(
        sparsity=1,
        code_range=(1.0, 1.2),
        delta=0.02,
        init=near_dictionary(model.dictionary, 0.02, seed),
        max_iter=0,
    ).fit(Y)
    assert coder.guarantee_.kind == "exact"
    assert ((coder.transform(Y) > 0) == (X > 0)).all()
    assert "assuming" in str(coder.guarantee_)


def test_no_certificate_no_promise():
    Y, _ = SparseCodingModel(gaussian_dictionary(10, 30), 4).sample(60)
    coder = SparseCodingAutoencoder(
        30, sparsity=4, code_range=(1.0, 10.0), max_iter=3, init="samples"
    ).fit(Y)
    assert coder.threshold_ == 0.0  # the theory's threshold is not certified
    assert coder.guarantee_.kind == "heuristic"
    dead = SparseCodingAutoencoder(
        30, sparsity=4, code_range=(1.0, 10.0), max_iter=3, threshold="theory"
    ).fit(Y)
    assert dead.dead_fraction_ == 1.0  # and would switch every unit off
    assert dead.loss_ == pytest.approx(0.5 * np.mean(np.sum(Y**2, axis=1)))
    assert "give sparsity" in str(SparseCodingAutoencoder(5, max_iter=1).fit(Y).guarantee_)


@pytest.mark.parametrize("seed", range(2))
def test_defaults_recover_atoms_that_random_signals_do_not_lead_to(seed):
    """Without a threshold (U; -U) has loss zero, and is what descent from random signals goes to."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(64, 32))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = np.zeros((1500, 64))
    for row in codes:
        row[rng.choice(64, 2, replace=False)] = rng.uniform(1, 2, 2)

    def recovered(coder):
        W = coder.components_ / np.linalg.norm(coder.components_, axis=1, keepdims=True)
        return int(((W @ atoms.T).max(axis=0) > 0.9).sum())

    default = SparseCodingAutoencoder(verbose=0).fit(codes @ atoms)
    samples = SparseCodingAutoencoder(init="samples", max_iter=100, verbose=0).fit(codes @ atoms)
    assert recovered(default) >= 58
    assert recovered(samples) <= 10
    assert samples.loss_ < 0.05 * samples.losses_[0]


def test_network_is_decode_after_encode():
    Y, _ = model_of().sample(100)
    coder = SparseCodingAutoencoder(40, threshold=0.1, max_iter=5).fit(Y)
    fresh = np.random.default_rng(0).normal(size=(50, 32))
    rebuilt = coder.inverse_transform(coder.transform(fresh))
    np.testing.assert_allclose(coder.network_(fresh), rebuilt, atol=1e-12)
    error = 0.5 * np.mean(np.sum((coder.inverse_transform(coder.transform(Y)) - Y) ** 2, axis=1))
    assert error == pytest.approx(coder.loss_)


def test_scale_of_the_signals_does_not_matter():
    Y, _ = model_of().sample(50)
    first, second = (
        SparseCodingAutoencoder(20, threshold=0.125 * c, max_iter=5).fit(c * Y) for c in (1.0, 2.0**-300)
    )
    np.testing.assert_array_equal(first.components_, second.components_)


def test_grid_search_in_a_pipeline_and_pickles():
    rng = np.random.default_rng(0)
    Y, X = SparseCodingModel(gaussian_dictionary(8, 12), 2).sample(80)
    labels = (X[:, :6].sum(axis=1) > X[:, 6:].sum(axis=1)).astype(int)
    search = GridSearchCV(
        make_pipeline(SparseCodingAutoencoder(12, max_iter=5), LogisticRegression()),
        {"sparsecodingautoencoder__threshold": [0.0, 0.5]},
        cv=2,
    ).fit(Y, labels)
    assert search.best_score_ > 0.6
    coder = SparseCodingAutoencoder(12, max_iter=5).fit(Y)
    again = pickle.loads(pickle.dumps(coder))
    fresh = rng.normal(size=(5, 8))
    np.testing.assert_array_equal(again.transform(fresh), coder.transform(fresh))
    assert len(coder.get_feature_names_out()) == 12


def test_the_zero_matrix_beats_far_starts():
    """From a start 50 lengths away, W = 0 alone covers 98 % of the distance."""
    A = gaussian_dictionary(10, 20)
    far = dictionary_error(near_dictionary(A, 50.0), A)
    assert far.columnwise == pytest.approx(50.0)
    assert far.worse_than_zero
    zero = dictionary_error(np.zeros((20, 10)), A)
    assert 1 - zero.columnwise / far.columnwise == pytest.approx(0.98)


def test_errors_do_not_see_order_or_sign():
    A = gaussian_dictionary(6, 9)
    rng = np.random.default_rng(1)
    W = (A.T * rng.choice([-1.0, 1.0], 9)[:, None])[rng.permutation(9)]
    found = dictionary_error(W, A)
    assert found.matched == pytest.approx(0.0, abs=1e-7)
    assert found.columnwise > 0.5
    assert dictionary_error(2.0 * W, A).direction == pytest.approx(0.0, abs=1e-7)


def test_descent_stops_at_a_critical_point():
    run = descend(np.eye(3), np.eye(3))
    assert run.n_iter == 0
    assert run.converged
    np.testing.assert_array_equal(run.weights, np.eye(3))
    off = descend(np.eye(3), -np.eye(3))  # no unit is on: nothing moves
    assert off.n_iter == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_components": 0}, "n_components"),
        ({"sparsity": 1.5}, "sparsity"),
        ({"max_iter": -1}, "max_iter"),
        ({"threshold": "best"}, "'theory'"),
        ({"threshold": np.nan}, "finite"),
        ({"threshold": "theory"}, "needs sparsity"),
        ({"code_range": (2.0, 1.0)}, "low <= high"),
        ({"code_range": (1.0,)}, "two numbers"),
        ({"delta": -1.0}, "delta"),
        ({"init": "zeros"}, "samples"),
        ({"init": None}, "samples"),
        ({"code_range": 5.0}, "two numbers"),
        ({"init": np.ones((3, 7))}, "shape"),
    ],
)
def test_bad_parameters_are_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        SparseCodingAutoencoder(**arguments).fit(np.eye(4))


def test_bad_data_is_explained():
    coder = SparseCodingAutoencoder(3, max_iter=1).fit(np.eye(4))
    with pytest.raises(ValueError, match="3 entries"):
        coder.inverse_transform(np.ones((2, 5)))
    with pytest.raises(ValueError, match="a row per atom"):
        dictionary_error(np.eye(3), np.eye(4))
    with pytest.raises(ValueError, match="scale them down"):
        SparseCodingAutoencoder(3).fit(1e200 * np.eye(4))
    zero = SparseCodingAutoencoder(3).fit(np.zeros((4, 2)))
    assert zero.loss_ == 0.0


@pytest.mark.parametrize("h", [None, 3])
def test_the_default_start_does_not_turn_every_unit_off(h):
    """On positive data a first step that is too long ends at the zero network."""
    X = np.abs(np.random.default_rng(0).normal(size=(40, 5)))
    coder = SparseCodingAutoencoder(h).fit(X)
    assert coder.dead_fraction_ < 1.0
    assert coder.loss_ < 0.2 * 0.5 * float(np.mean(np.sum(X**2, axis=1)))


def test_an_interruption_keeps_the_weights_so_far(monkeypatch):
    def two_steps(steps, what, *, verbose):
        yield from range(2)
        raise KeyboardInterrupt

    monkeypatch.setattr(gradient_descent, "watched", two_steps)
    X = np.abs(np.random.default_rng(0).normal(size=(40, 5)))
    with pytest.warns(UserWarning, match="interrupted"):
        coder = SparseCodingAutoencoder().fit(X)
    assert coder.n_iter_ == 2 and not coder.converged_
    assert coder.losses_[-1] < coder.losses_[0]


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_threshold_and_certificate_are_those_of_the_weights(delta):
    model = SparseCodingModel(hadamard_dictionary(256), 2, 1.0, 1.2)
    Y, _ = model.sample(40)
    coder = SparseCodingAutoencoder(
        init=model.dictionary.T, threshold="theory", sparsity=2, code_range=(1.0, 1.2), delta=delta,
        max_iter=0,
    ).fit(Y)  # fmt: skip
    assert coder.threshold_ == pytest.approx(recovery_threshold(model, delta))
    alone = certify_weights(
        coder.components_, coder.threshold_, sparsity=2, low=1.0, high=1.2, delta=delta
    )
    assert coder.guarantee_.certificate == alone and coder.guarantee_.kind == "exact"
