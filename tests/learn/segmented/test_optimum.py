"""The fast search against plain enumeration of convex programs, planted functions, and symmetries."""

import numpy as np
import pytest

from pindown.deadline import Deadline
from pindown.learn.segmented import Loss, SegmentedRegressor
from pindown.learn.segmented._problem import solve
from pindown.learn.segmented.convex_programs import enumerate_programs

LOSSES = ["squared", "absolute"]
OTHERS = {
    "upper quantile": Loss("quantile", quantile=0.85),
    "low quantile": Loss("quantile", quantile=0.2),
    "huber": Loss("huber", threshold=0.4),
    "wide huber": Loss("huber", threshold=3.0),
}


def best(x, y, n_pieces, loss="squared", weights=None, budget=None):
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    rule = Loss(loss) if isinstance(loss, str) else loss
    return solve(x, y, w, n_pieces, rule, Deadline.after(budget))


def tiny_problem(seed, largest):
    rng = np.random.default_rng(seed)
    n, n_pieces = int(rng.integers(3, largest)), int(rng.integers(1, 4))
    x, y, w = rng.normal(size=n), rng.normal(size=n), np.ones(n)
    if seed % 3 == 0:
        x = np.round(2 * x) / 2  # repeated values
    if seed % 5 == 0:
        y = np.round(y)  # many points on one line
    if seed % 2:
        w = rng.uniform(0.2, 3.0, n)
    return x, y, w, n_pieces


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", range(6))
def test_agrees_with_enumeration_of_convex_programs(block, loss):
    for seed in range(20 * block, 20 * block + 20):
        x, y, w, n_pieces = tiny_problem(seed, largest=8 if loss == "squared" else 7)
        fit = best(x, y, n_pieces, loss, w)
        assert fit.loss == pytest.approx(enumerate_programs(x, y, n_pieces, loss, w), abs=1e-7), seed
        assert fit.n_pieces <= n_pieces
        assert fit.proved


@pytest.mark.parametrize("name", OTHERS)
def test_other_losses_agree_with_enumeration(name):
    loss = OTHERS[name]
    for seed in range(12):
        x, y, w, n_pieces = tiny_problem(seed, largest=6)
        fit = best(x, y, n_pieces, loss, w)
        expected = enumerate_programs(x, y, n_pieces, loss, w)
        assert fit.loss <= expected + 1e-7, seed
        assert fit.loss == pytest.approx(expected, abs=1e-5 if loss.name == "huber" else 1e-7), seed
        assert fit.proved and fit.lower_bound <= fit.loss <= fit.lower_bound + 1e-6


def test_losses_become_each_other():
    x, y, w, _ = tiny_problem(7, largest=8)
    x, y, w = np.r_[x, x + 5], np.r_[y, y[::-1]], np.r_[w, w]
    square = best(x, y, 3, "squared", w).loss
    assert best(x, y, 3, Loss("huber", threshold=100.0), w).loss == pytest.approx(square, rel=1e-7)
    absolute = best(x, y, 3, "absolute", w).loss
    assert 2 * best(x, y, 3, Loss("quantile"), w).loss == pytest.approx(absolute, rel=1e-9)
    narrow = best(x, y, 3, Loss("huber", threshold=1e-6), w).loss
    assert narrow / 2e-6 == pytest.approx(absolute, rel=1e-4)
    some = best(x, y, 3, Loss("huber", threshold=0.4), w).loss
    assert best(x, 50 * y, 3, Loss("huber", threshold=20.0), w).loss == pytest.approx(
        2500 * some, rel=1e-7
    )


def test_the_fit_of_a_quantile_has_that_share_below_it():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 4, 40)
    y = np.abs(x - 2) + rng.exponential(size=40)
    model = SegmentedRegressor(2, loss="quantile", quantile=0.75, budget=None).fit(x, y)
    below = np.mean(y < model.predict(x) - 1e-9), np.mean(y <= model.predict(x) + 1e-9)
    assert model.optimal_ and below[0] <= 0.75 <= below[1]


def test_one_outlier_pulls_hubers_fit_as_much_as_a_far_one():
    x = np.linspace(0, 4, 30)
    fits = []
    for size in (10.0, 1e3):
        y = np.abs(x - 2)
        y[3] += size
        fits.append(SegmentedRegressor(2, loss="huber", threshold=0.1).fit(x, y).predict(x))
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-6)
    assert np.abs(fits[0] - np.abs(x - 2)).max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_agrees_with_enumeration_on_larger_problems(loss):
    for seed in range(1000, 1040):
        x, y, w, n_pieces = tiny_problem(seed, largest=11)
        fit = best(x, y, n_pieces + 1, loss, w)
        assert fit.loss == pytest.approx(enumerate_programs(x, y, n_pieces + 1, loss, w), abs=1e-7), seed


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_pieces", [2, 3, 4, 5])
def test_planted_pieces_are_recovered(n_pieces, loss):
    rng = np.random.default_rng(n_pieces)
    x = np.sort(rng.uniform(0, 10, 80))
    knots = np.linspace(0, 10, n_pieces + 1)[1:-1] + 0.1234
    slopes = rng.permutation(np.arange(n_pieces) - 1.5)
    y = slopes[0] * x + sum(np.diff(slopes)[j] * np.maximum(x - t, 0) for j, t in enumerate(knots))
    model = SegmentedRegressor(n_pieces, loss=loss, budget=None).fit(x, y)
    assert model.best_loss_ < 1e-9
    assert model.optimal_
    np.testing.assert_allclose(model.breakpoints_, knots, atol=1e-7)
    np.testing.assert_allclose(model.slopes_, slopes, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_more_pieces_never_fit_worse(loss):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=25), rng.normal(size=25)
    losses = [best(x, y, n_pieces, loss).loss for n_pieces in range(1, 5)]
    assert np.all(np.diff(losses) <= 1e-9)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_affine_changes_and_reversal_change_nothing_else(loss):
    rng = np.random.default_rng(6)
    x, y = rng.uniform(0, 1, 40), rng.normal(size=40)
    power = 2 if loss == "squared" else 1
    reference = best(x, y, 3, loss)
    moved = best(1e4 * x + 1e6, 1e-3 * y + 7.0, 3, loss)
    reversed_ = best(-x, y, 3, loss)
    tilted = best(x, y + 4.0 * x, 3, loss)
    assert moved.loss / 1e-3**power == pytest.approx(reference.loss, rel=1e-6)
    np.testing.assert_allclose(moved.function.knots, 1e4 * reference.function.knots + 1e6, rtol=1e-9)
    assert reversed_.loss == pytest.approx(reference.loss, rel=1e-9)
    np.testing.assert_allclose(reversed_.function.knots[::-1], -reference.function.knots, atol=1e-8)
    assert tilted.loss == pytest.approx(reference.loss, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_count_as_repetitions(loss):
    rng = np.random.default_rng(7)
    x, y, counts = rng.normal(size=15), rng.normal(size=15), rng.integers(0, 4, 15)
    weighted = best(x, y, 3, loss, counts)
    repeated = best(np.repeat(x, counts), np.repeat(y, counts), 3, loss)
    assert weighted.loss == pytest.approx(repeated.loss, abs=1e-9)
    shuffled = rng.permutation(15)
    assert best(x[shuffled], y[shuffled], 3, loss, counts[shuffled]).loss == pytest.approx(weighted.loss)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_local_search_is_below_the_bound(loss):
    from scipy.optimize import minimize

    rng = np.random.default_rng(8)
    x, y = np.sort(rng.uniform(0, 1, 60)), rng.normal(size=60)
    fit = best(x, y, 3, loss)
    assert fit.proved

    def objective(z):
        t = np.sort(z[:2])
        error = np.abs(
            z[2] + z[3] * x + z[4] * np.maximum(x - t[0], 0) + z[5] * np.maximum(x - t[1], 0) - y
        )
        return np.sum(error**2 if loss == "squared" else error)

    found = [
        minimize(objective, np.r_[rng.uniform(0, 1, 2), rng.normal(size=4)], method="Nelder-Mead").fun
        for _ in range(15)
    ]
    assert min(found) >= fit.lower_bound - 1e-9
    spline = np.r_[
        fit.function.knots,
        fit.function(np.zeros(1)),
        fit.function.slopes[0],
        np.diff(fit.function.slopes),
    ]
    assert objective(spline) == pytest.approx(fit.loss, rel=1e-9)


def test_a_jump_costs_two_breakpoints():
    x = np.arange(8.0)
    y = np.where(x < 4, 0.0, 5.0) + np.tile([0.1, -0.1], 4)
    assert best(x, y, 3).loss < 0.1 < best(x, y, 2).loss
    np.testing.assert_allclose(best(x, y, 3).function.knots, [3, 4], atol=0.3)


@pytest.mark.parametrize("scale", ["uniform", "noise", "clean", "jump"])
def test_a_thousand_points_are_proved_quickly(scale):
    import time

    rng = np.random.default_rng(9)
    x = np.sort(rng.uniform(0, 10, 1000))
    y = np.interp(x, [0, 2, 4, 7, 10], [0, 1, -1, 2, 0])
    y += {"uniform": 0.1, "noise": 0.5, "clean": 1e-6, "jump": 0.1}[scale] * rng.normal(size=1000)
    y += 3.0 * (x > 5) * (scale == "jump")
    best(x[:10], y[:10], 2)
    start = time.process_time()
    fit = best(x, y, 4, budget=60)
    assert fit.proved == (scale != "clean")  # sums of squares near 1 cannot tell 1e-12 from 1.01e-12
    assert fit.loss - fit.lower_bound <= 2e-14 * y.var() * 1000 + 1e-6 * fit.loss
    assert time.process_time() - start < 10


@pytest.mark.parametrize("trend", ["none", "bend", "steps"])
def test_spare_pieces_in_noise_are_placed_and_proved(trend):
    """Pieces that nothing asks for go to short runs of points: the hardest case for the bound."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, 500))
    y = {"none": 0 * x, "bend": np.abs(x), "steps": np.sign(np.sin(5 * x))}[trend]
    y = y + 0.3 * rng.normal(size=500)
    fit = best(x, y, 5, budget=300)
    assert fit.proved
    assert fit.lower_bound <= fit.loss <= best(x, y, 4, budget=300).loss


@pytest.mark.parametrize("loss", LOSSES)
def test_steep_pieces_between_close_points(loss):
    fit = best([0.0, 1e-12, 1.0, 2.0], [0.0, 1.0, 0.0, 1.0], 3, loss)
    assert fit.loss == pytest.approx(0.0, abs=1e-9)
    assert fit.n_pieces == 3


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("size", [1e4, 1e6, 1e8])
def test_an_outlier_does_not_hide_the_others(size, loss):
    """The outlier is fitted by a piece of its own, so that the others decide the loss."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 40))
    y = np.interp(x, [0, 5, 10], [1, 4, 2]) + 0.3 * rng.normal(size=40)
    others = best(x[:-1], y[:-1], 2, loss)
    outlier = best(x, np.r_[y[:-1], size], 3, loss)
    assert outlier.lower_bound <= others.loss * (1 + 1e-6)
    assert outlier.lower_bound < outlier.loss or outlier.loss <= others.loss * (1 + 1e-5)
