"""The early phase: extremal directions in closed form, by search, and as training shows them."""

import numpy as np
import pytest

from pindown.bias.two_layer import (
    balanced_neurons,
    early_potential,
    extremal_directions,
    search_extremal_directions,
    sector,
    train_two_layer,
)
from pindown.datasets.synthetic import orthogonally_separable


def test_the_closed_form_is_a_maximum_in_the_named_sector():
    X, y = orthogonally_separable()
    found = extremal_directions(X, y)
    assert (sector(found.positive[0], X) == y).all()  # on, for its own class; off, for the other
    assert (sector(found.negative[0], X) == -y).all()
    rng = np.random.default_rng(0)
    for unit, sign in ((found.positive[0], 1), (found.negative[0], -1)):
        here = sign * early_potential(unit, X, y)
        for _ in range(1000):
            near = unit + 1e-2 * rng.standard_normal(20)
            assert sign * early_potential(near, X, y) < here


def test_sectors_live_in_weight_space():
    """The text speaks of input space; a sector is a cone of weights, closed under scaling of w, not "
    "of one x."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    w = np.array([2.0, -1.0])
    assert sector(w, X).tolist() == sector(3 * w, X).tolist() == [1, -1]
    assert sector(w + 0.5, X).tolist() == [1, -1]  # a neighbourhood of w
    on_the_border = np.array([[0.1 + 0.2, -0.3], [0.0, 0.0]])  # orthogonal to (1, 1) but for rounding
    assert sector(np.ones(2), on_the_border).tolist() == [0, 0]


def test_the_search_finds_one_of_each():
    X, y = orthogonally_separable(100, n_features=6)
    exact, found = extremal_directions(X, y), search_extremal_directions(X, y, starts=200)
    assert found.positive.shape == found.negative.shape == (1, 6)
    assert found.positive[0] @ exact.positive[0] > 1 - 1e-8
    assert found.negative[0] @ exact.negative[0] > 1 - 1e-8


def test_data_that_are_not_separable_may_have_more():
    # Two opposite positive samples and no negative one in between: each has its own end.
    found = search_extremal_directions([[1.0, 0.0], [-1.0, 0.1]], [1, 1], starts=50)
    assert len(found.positive) == 2 and len(found.negative) == 0
    with pytest.raises(ValueError, match="not orthogonally separable"):
        extremal_directions([[1.0, 0.0], [-1.0, 0.1]], [1, 1])


def test_the_local_formula_of_the_potential():
    X, y = orthogonally_separable(30, n_features=4)
    rng = np.random.default_rng(1)
    w, v, eps = rng.standard_normal(4), rng.standard_normal(4), 1e-6
    w /= np.linalg.norm(w)
    moved = w + eps * v
    linear = early_potential(w, X, y) + eps * 0.5 * (y * (X @ moved > 0)) @ (X @ v)
    assert early_potential(moved, X, y) == pytest.approx(linear / np.linalg.norm(moved), abs=1e-12)


def test_neurons_first_turn_to_the_sums_of_their_class():
    X, y = orthogonally_separable()
    start = balanced_neurons(50, 20, scale=1e-4, random_state=0)
    run = train_two_layer(X, y, start=start, steps=400, record=400, step=0.05)
    first = run.log_losses[0]
    at = next(i for i, value in enumerate(run.log_losses) if value < first + np.log(0.99))
    net, aims = run.path[at], extremal_directions(X, y)
    units = net.W / np.linalg.norm(net.W, axis=1, keepdims=True)
    cosines = np.where(net.a > 0, units @ aims.positive[0], units @ aims.negative[0])
    active = np.abs(net.a) > 10 * np.abs(start.a)
    assert active.sum() > 25 and cosines[active].min() > 0.99


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="starts must be"):
        search_extremal_directions([[1.0]], [1], starts=0)
