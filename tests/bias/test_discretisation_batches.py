"""Descent in batches, and the scale of its step."""

import numpy as np
import pytest

from pindown.bias.discretisation import batch_descent

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 3)), RNG.standard_normal(20)


def gradients(w, chosen):
    return (X[chosen] @ w - Y[chosen])[:, None] * X[chosen]


@pytest.mark.parametrize("batch", [1, 5, 20])
def test_sum_and_mean_are_one_method_with_scaled_steps(batch):
    common = {"batch": batch, "n_steps": 50, "random_state": 3}
    a = batch_descent(gradients, 20, np.zeros(3), step=0.01, reduction="sum", **common)
    b = batch_descent(gradients, 20, np.zeros(3), step=0.01 * batch, reduction="mean", **common)
    np.testing.assert_allclose(a.points, b.points, atol=1e-14)


def test_printed_sums_diverge_where_one_step_serves_all_batch_sizes():
    """One step for single samples, batches and all data, with sums as printed: the last diverges."""
    limit = 2 / np.linalg.norm(X, 2) ** 2  # largest stable step of the full sum
    step = 1.5 * limit
    common = {"step": step, "n_steps": 3_000}
    printed = batch_descent(gradients, 20, np.zeros(3), batch=20, reduction="sum", **common)
    single = batch_descent(gradients, 20, np.zeros(3), batch=1, reduction="sum", **common)
    ours = batch_descent(gradients, 20, np.zeros(3), batch=20, reduction="mean", **common)
    assert not printed.finite or np.linalg.norm(printed.end) > 1e6
    assert np.linalg.norm(single.end) < 10
    best = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(ours.end, best, atol=1e-3)


def test_batches_hold_different_samples_and_each_as_often():
    seen = []

    def record(w, chosen):
        seen.append(np.sort(chosen))
        return np.zeros((len(chosen), 3))

    batch_descent(record, 20, np.zeros(3), step=0.1, batch=5, n_steps=2_000)
    assert all(len(np.unique(chosen)) == 5 for chosen in seen)
    counts = np.bincount(np.concatenate(seen), minlength=20)
    np.testing.assert_allclose(counts, 500, atol=5 * np.sqrt(500))


def test_full_batches_are_gradient_descent_and_seeds_repeat():
    w = np.zeros(3)
    for _ in range(10):
        w = w - 0.1 * X.T @ (X @ w - Y) / 20
    found = batch_descent(gradients, 20, np.zeros(3), step=0.1, batch=20, n_steps=10)
    np.testing.assert_allclose(found.end, w, atol=1e-14)
    again = [
        batch_descent(gradients, 20, np.zeros(3), step=0.1, batch=2, n_steps=10, random_state=s).end
        for s in (1, 1, 2)
    ]
    assert (again[0] == again[1]).all() and (again[0] != again[2]).any()


@pytest.mark.parametrize(
    "change", [{"batch": 21}, {"batch": 0}, {"step": 0}, {"reduction": "max"}, {"start": [np.nan]}]
)
def test_bad_input(change):
    arguments = {
        "gradients": gradients,
        "n_samples": 20,
        "start": np.zeros(3),
        "step": 0.1,
        "batch": 1,
        "n_steps": 1,
    }
    with pytest.raises(ValueError, match="must"):
        batch_descent(**(arguments | change))
