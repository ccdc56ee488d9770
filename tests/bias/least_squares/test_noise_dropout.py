"""What dropout trains a linear model to."""

from itertools import product

import numpy as np
import pytest

from pindown.bias.least_squares import dropout_least_squares


def problem(n=7, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


@pytest.mark.parametrize("n, d", [(7, 4), (3, 6), (1, 3)])
@pytest.mark.parametrize("keep", [0.3, 0.5, 0.9])
def test_weights_minimise_the_mean_over_all_masks(n, d, keep):
    """All masks as rows of one weighted least-squares problem: an independent route."""
    X, y = problem(n, d)
    rows, targets = [], []
    for i in range(n):
        for mask in product((0, 1), repeat=d):
            weight = np.sqrt(np.prod([keep if m else 1 - keep for m in mask]))
            rows.append(weight * X[i] * mask)
            targets.append(weight * y[i])
    brute = np.linalg.lstsq(np.array(rows), np.array(targets), rcond=None)[0]
    found = dropout_least_squares(X, y, keep)
    np.testing.assert_allclose(found.trained, brute, atol=1e-9)
    assert found.loss == pytest.approx(np.sum((np.array(rows) @ brute - targets) ** 2))
    np.testing.assert_allclose(found.weights, keep * brute, atol=1e-9)
    penalised = X.T @ X + np.diag(found.penalties)  # ridge, with a penalty for each input
    np.testing.assert_allclose(penalised @ found.weights, X.T @ y, atol=1e-9)


def test_training_with_torch_dropout_gets_there():
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, y = problem(30, 3, 1)
    layer, drop = torch.nn.Linear(3, 1, bias=False).double(), torch.nn.Dropout(0.4)
    Xt, yt = torch.tensor(X), torch.tensor(y)
    mean, steps = torch.zeros(3, dtype=torch.float64), 3_000
    for t in range(steps):
        loss = ((layer(drop(Xt))[:, 0] - yt) ** 2).mean()
        (slope,) = torch.autograd.grad(loss, layer.weight)
        with torch.no_grad():
            layer.weight -= 0.1 * slope
            if t >= steps // 4:
                mean += layer.weight[0] / (steps - steps // 4)
    # torch divides what is kept by its probability, so its weights are those to predict with
    np.testing.assert_allclose(mean.numpy(), dropout_least_squares(X, y, 0.6).weights, atol=0.03)


def test_units_do_not_matter_and_nothing_dropped_is_the_least_norm():
    X, y = problem(9, 4, 2)
    scale = np.array([1.0, 1e6, 1e-6, 30.0])
    ours = dropout_least_squares(X, y, 0.7).weights
    np.testing.assert_allclose(dropout_least_squares(X * scale, y, 0.7).weights * scale, ours, rtol=1e-8)
    wide, target = problem(3, 6)
    np.testing.assert_allclose(
        wide @ dropout_least_squares(wide, target, 1.0).weights, target, atol=1e-10
    )


def test_inputs_that_are_zero_and_bad_input():
    X, y = problem()
    X[:, 1] = 0.0
    found = dropout_least_squares(X, y, 0.5)
    assert found.weights[1] == pytest.approx(0.0, abs=1e-15) and found.penalties[1] == 0.0
    for keep in (0.0, 1.5, float("nan"), -0.1):
        with pytest.raises(ValueError, match="keep must"):
            dropout_least_squares(X, y, keep)
    with pytest.raises(ValueError, match="finite"):
        dropout_least_squares([[np.nan]], [1.0], 0.5)
