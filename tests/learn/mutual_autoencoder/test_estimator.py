"""The estimator: scikit-learn's rules, the analytic optimum, symbols, seeds, interruption, bad input."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn.mutual_autoencoder import MutualAutoencoder, linear_gaussian_optimum, training

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
PLAIN_ENTROPY = 0.5 * math.log(2 * math.pi * math.e)


@parametrize_with_checks([MutualAutoencoder()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def normal(n=1000, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, 1))
    return (x - x.mean()) / x.std()


def straight(information, **options):
    return MutualAutoencoder(
        information, hidden=(), mixture=1, max_iter=400, learning_rate=3e-2, batch_size=128, **options
    )


@pytest.mark.parametrize("information", [1.0])
def test_affine_networks_find_the_analytic_optimum(information):
    X = normal()
    model = straight(information).fit(X)
    best = linear_gaussian_optimum(information)
    assert model.measurement_.kind == "exact"
    assert model.information_ == pytest.approx(information, abs=0.03)
    assert model.score(X) == pytest.approx(best.elbo, abs=0.02)
    slope = np.abs(np.diff(model.inverse_transform([[-0.5], [0.5]])[:, 0]))[0]
    assert slope == pytest.approx(best.slope, abs=0.03)
    assert np.abs(np.diff(model.transform([[-0.5], [0.5]])[:, 0]))[0] == pytest.approx(
        best.slope, abs=0.05
    )


def test_the_score_is_a_density_in_the_data_s_units():
    X = normal()
    model, scaled = (
        MutualAutoencoder(0.5, hidden=(), max_iter=100, learning_rate=5e-2).fit(Z)
        for Z in (X, 8.0 * X - 3.0)
    )
    assert scaled.information_ == pytest.approx(model.information_, abs=0.02)
    assert scaled.score(8.0 * X - 3.0) == pytest.approx(model.score(X) - math.log(8.0), abs=0.02)
    assert model.score(X) <= -PLAIN_ENTROPY + 1e-3  # no density fits the sample better than its own


def test_score_is_the_mean_of_a_bound_estimated_by_draws():
    """Gauss-Hermite expectations against 200,000 draws from the encoder."""
    import torch

    from pindown.learn.mutual_autoencoder._objective import evidence_bound

    X = normal(20)
    model = MutualAutoencoder(1.0, max_iter=50).fit(X)
    rows = model.rows_.tensor(np.repeat(X, 10_000, axis=0))
    parts = model.networks_
    drawn = evidence_bound(parts.encoder, parts.decoder, rows, torch.Generator().manual_seed(0)).numpy()
    error = drawn.std() / math.sqrt(len(drawn))
    assert abs(drawn.mean() - model.rows_.log_unit - model.score(X)) < 5 * error + 1e-3


def test_symbols_of_any_kind_come_back():
    rng = np.random.default_rng(0)
    X = np.array(["left", "right", "up"])[rng.integers(3, size=(300, 1))]
    model = MutualAutoencoder(
        1.0, decoder="categorical", encoder="resampling", max_iter=150, learning_rate=2e-2
    ).fit(X)
    assert model.entropy_ == pytest.approx(math.log(3), abs=0.01)
    assert model.measurement_.method == "quadrature"
    assert set(np.unique(model.sample(50, random_state=0))) <= {"left", "right", "up"}
    report = model.information_report(X)
    assert report.exact_rows == report.reconstruction > 0.6
    assert "come back exactly" in str(report) and report.active == 1
    with pytest.raises(ValueError, match=r"column 0 has the symbol 'down'"):
        model.transform(np.array([["down"]]))


def test_several_columns_of_symbols():
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=(200, 1))
    X = np.hstack([first, first % 2, rng.integers(2, size=(200, 1))])
    model = MutualAutoencoder(0.5, decoder="categorical", max_iter=100).fit(X)
    assert model.measurement_.method == "quadrature over codes"
    assert model.transform(X).shape == (200, 1) and model.sample(7).shape == (7, 3)
    assert np.isfinite(model.score(X))


def test_longer_codes_measure_by_the_bound():
    X = np.random.default_rng(0).standard_normal((60, 3))
    model = MutualAutoencoder(0.5, n_components=2, max_iter=60).fit(X)
    assert model.measurement_.method == "variational lower bound" and model.measurement_.n == 20_000
    assert model.transform(X).shape == (60, 2) and len(model.get_feature_names_out()) == 2
    report = model.information_report(X)
    back = model.inverse_transform(model.transform(X))
    assert report.exact_rows is None and report.rate > 0
    assert report.reconstruction == pytest.approx(np.sqrt(np.mean((X - back) ** 2)))


def test_more_than_the_entropy_is_called_impossible():
    X = np.arange(40)[:, None] % 2
    with pytest.warns(UserWarning, match=r"more than the 0\.6931 nats"):
        MutualAutoencoder(1.0, decoder="categorical", max_iter=5).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        MutualAutoencoder(0.5, decoder="categorical", max_iter=5, penalty=0).fit(X)


def test_a_missed_target_is_said():
    with pytest.warns(ConvergenceWarning, match=r"asked for 3 nats, measured .* raise max_iter"):
        MutualAutoencoder(3.0, max_iter=2).fit(normal(50))


def test_the_same_seed_gives_the_same_model():
    X = normal(100)
    first, second = (MutualAutoencoder(max_iter=20, random_state=4).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    assert first.information_ == second.information_
    other = MutualAutoencoder(max_iter=20, random_state=5).fit(X)
    assert not np.array_equal(first.transform(X), other.transform(X))
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again.transform(X), first.transform(X))


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = rng.standard_normal((200, 2)) + 5.0 * y[:, None]
    pipe = make_pipeline(
        MutualAutoencoder(1.0, max_iter=100, learning_rate=2e-2), LogisticRegression()
    ).fit(X, y)
    assert pipe.score(X, y) > 0.95  # a nat is more than the label's log 2


def test_an_interruption_keeps_the_networks_so_far(monkeypatch):
    def three_steps(items, what, *, verbose):
        yield from range(3)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "watched", three_steps)
    with pytest.warns(UserWarning, match="interrupted after 3 of 50"):
        model = MutualAutoencoder(max_iter=50).fit(normal(30))
    assert model.n_iter_ == 3 and np.isfinite(model.information_)


def test_constant_and_huge_columns():
    X = np.hstack([normal(40), np.full((40, 1), 7.0)])
    model = MutualAutoencoder(max_iter=20).fit(X)
    np.testing.assert_allclose(model.sample(5, random_state=0)[:, 1], 7.0, atol=5)
    huge = MutualAutoencoder(max_iter=20).fit(1e300 * normal(40))
    assert np.isfinite(huge.score(1e300 * normal(40)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"information": -1.0}, "information"),
        ({"information": np.nan}, "information"),
        ({"penalty": "much"}, "penalty"),
        ({"n_components": 0}, "n_components"),
        ({"mixture": 1.5}, "mixture"),
        ({"max_iter": 0}, "max_iter"),
        ({"decoder": "poisson"}, "'categorical'"),
        ({"encoder": None}, "'resampling'"),
        ({"control": "bang"}, "'integral'"),
        ({"hidden": "32"}, "hidden"),
        ({"hidden": 32}, "hidden"),
        ({"learning_rate": 0.0}, "learning_rate"),
    ],
)
def test_bad_parameters_are_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        MutualAutoencoder(**arguments).fit(normal(10))


def test_bad_data_is_explained():
    with pytest.raises(ValueError, match="minimum of 2"):
        MutualAutoencoder().fit([[1.0]])
    with pytest.raises(ValueError, match="NaN"):
        MutualAutoencoder().fit([[np.nan], [1.0]])
    mixed = np.array([["a"], [2], [None]] * 2, dtype=object)
    with pytest.raises(ValueError, match="column 0 has NoneType, int, str"):
        MutualAutoencoder(0.1, decoder="categorical").fit(mixed)
    model = MutualAutoencoder(max_iter=2).fit(normal(10))
    with pytest.raises(ValueError, match="1 entries each; got 2"):
        model.inverse_transform(np.ones((3, 2)))
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)
