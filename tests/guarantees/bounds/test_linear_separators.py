"""Margin bounds of separators: against the formulas, by simulation, and monotone."""

import numpy as np
import pytest

from pindown.guarantees.bounds import linear_margin_bound, max_pooling_bound


@pytest.mark.parametrize("n", [100, 10_000, 10**8])
def test_agree_with_the_formulas(n):
    for margin, i in ((0.01, 7), (0.3, 2), (0.9, 1)):
        formula = 2 * 2**i / np.sqrt(n) + np.sqrt(2 * np.log(4 * i * i / 0.05) / n)
        assert linear_margin_bound(margin, 1.0, n).value == pytest.approx(min(formula, 1.0))
    for d in (4, 9):
        B = 160 * np.sqrt(2 * d)
        formula = 2 * B / np.sqrt(n) + (1 + B) * np.sqrt(2 * np.log(2 / 0.05) / n)
        assert max_pooling_bound(d, n).value == pytest.approx(min(formula, 1.0))


def test_holds_for_separators_found_on_the_sample():
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(0)
    w = np.array([0.6, 0.8])

    def points(n):
        X = rng.uniform(-0.7, 0.7, (20 * n, 2))
        return X[np.abs(X @ w) > 0.3][:n]

    X_new = points(20_000)
    for _ in range(5):
        X = points(3000)
        y = np.sign(X @ w)
        u = LinearSVC(C=1e6, fit_intercept=False, max_iter=20_000).fit(X, y).coef_[0]
        margin = float((y * (X @ u)).min() / np.linalg.norm(u))
        bound = linear_margin_bound(margin, 1.0, len(X))
        assert not bound.vacuous
        assert np.mean(np.sign(X_new @ u) != np.sign(X_new @ w)) <= bound.value


def test_monotone():
    base = linear_margin_bound(0.3, 1.0, 1000).formula_value
    assert linear_margin_bound(0.1, 1.0, 1000).formula_value > base
    assert linear_margin_bound(0.3, 3.0, 1000).formula_value > base
    assert linear_margin_bound(0.3, 1.0, 100).formula_value > base
    assert linear_margin_bound(0.3, 1.0, 1000, 0.001).formula_value > base
    assert max_pooling_bound(8, 10**9).formula_value > max_pooling_bound(4, 10**9).formula_value


def test_failures_of_the_lemmas_are_in_the_confidence():
    bound = max_pooling_bound(6, 10**9, 0.05)
    assert bound.confidence == pytest.approx(1 - 0.05 - 4 * np.exp(-6))
    assert max_pooling_bound(6, 10).vacuous  # too few points for the shares of classes


def test_margin_above_the_norm_is_a_violation():
    assert linear_margin_bound(2.0, 1.0, 1000).kind == "heuristic"


@pytest.mark.parametrize("bad", [(np.nan, 1.0, 10), (0.1, 0.0, 10), (0.1, 1.0, 0), (np.inf, 1.0, 10)])
def test_refuses(bad):
    with pytest.raises(ValueError, match="must"):
        linear_margin_bound(*bad)
