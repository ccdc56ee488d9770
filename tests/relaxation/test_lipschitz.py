"""Upper bounds lie above every slope, lower bounds are attained, units may be renamed and rescaled."""

import itertools
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.guarantees import lipschitz_bounds, spectral_norm
from pindown.relaxation.lipschitz import (
    _merged_norms,
    _top_direction,
    averaged_bound,
    layer_spectral_norms,
    norm_product,
    proved_slope,
)
from pindown.relaxation.operator_norms import absolute_product_norm, balanced_weights, spectral_norms


def random_net(rng, widths):
    pairs = itertools.pairwise(widths)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairs]
    )


def rescaled(net, rng):
    """Return the same function with units permuted and rescaled."""
    layers, order, scale = [], np.arange(net.in_features), np.ones(net.in_features)
    for i, (weight, b) in enumerate(net.layers):
        W = weight[:, order] / scale
        last = i == net.depth - 1
        order = np.arange(len(b)) if last else rng.permutation(len(b))
        scale = np.ones(len(b)) if last else 2.0 ** rng.integers(-8, 9, len(b))
        layers.append((W[order] * scale[:, None], b[order] * scale))
    return ReluNetwork.from_layers(layers)


# ------------------------------------------------------------------ spectral norms


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (3, 7), (40, 40), (300, 20), (350, 400)])
def test_norm_is_above_the_svd_and_tight(shape):
    rng = np.random.default_rng(0)
    for scale in (1e-150, 1.0, 1e150):
        W = scale * rng.standard_normal(shape)
        bound, svd = spectral_norm(W), np.linalg.norm(W, 2)
        assert svd * (1 - 1e-13) <= bound.value <= svd * (1 + 1e-8)
        assert bound.tight


def bounds_the_norm(s, W):
    """Whether s^2 I - W'W is positive definite, by rational elimination."""
    A = [
        [Fraction(s) ** 2 * (i == j) - int(v) for j, v in enumerate(row)]
        for i, row in enumerate(W.T @ W)
    ]
    for k in range(len(A)):
        if not A[k][k] > 0:
            return False
        for i in range(k + 1, len(A)):
            factor = A[i][k] / A[k][k]
            A[i] = [a - factor * b for a, b in zip(A[i], A[k], strict=True)]
    return True


def test_norm_is_rigorous_for_integer_matrices():
    rng = np.random.default_rng(0)
    for _ in range(20):
        W = rng.integers(-9, 10, (5, 4))
        assert bounds_the_norm(spectral_norm(W.astype(float)).value, W)


def test_many_norms_are_rigorous_for_integer_matrices():
    W = np.random.default_rng(1).integers(-9, 10, (20, 5, 4))
    guesses = np.linalg.norm(W, ord=2, axis=(1, 2))
    for matrix, bound, guess in zip(W, spectral_norms(W / 1.0, guesses), guesses, strict=True):
        assert bounds_the_norm(bound, matrix) and bound <= guess * (1 + 1e-9)


def test_norm_of_equal_singular_values_zero_and_one_row():
    assert 1.0 <= spectral_norm(np.eye(30)).value <= 1 + 1e-9
    assert spectral_norm(np.zeros((3, 4))).value == 0.0
    assert spectral_norm(sp.csr_array((3, 4))).value == 0.0
    assert 5.0 <= spectral_norm(np.array([[3.0, 4.0]])).value <= 5 + 1e-12


def test_sparse_norm_agrees_and_short_of_time_it_stays_above():
    W = sp.random_array((500, 700), density=0.02, rng=np.random.default_rng(0), format="csr")
    W.data -= 0.5
    svd = np.linalg.norm(W.toarray(), 2)
    assert svd * (1 - 1e-13) <= spectral_norm(W).value <= svd * (1 + 1e-8)
    hasty = spectral_norm(W, budget=0.0)
    assert hasty.value >= svd and not hasty.tight


def test_absolute_product_is_above_and_tight_for_positive_matrices():
    rng = np.random.default_rng(0)
    A, B = rng.random((6, 8)), rng.random((5, 6))
    truth = np.linalg.norm(B @ A, 2)
    assert truth <= absolute_product_norm([A, B]) <= truth * (1 + 1e-6)
    assert np.linalg.norm(B @ (A - 0.5), 2) <= absolute_product_norm([A - 0.5, B])


# ------------------------------------------------------------------ Lipschitz bounds


@pytest.mark.parametrize("seed", range(200))
def test_upper_bounds_hold_on_random_networks(seed):
    rng = np.random.default_rng(seed)
    widths = [int(rng.integers(1, 9)) for _ in range(rng.integers(2, 6))]
    net = random_net(rng, widths)
    bounds = lipschitz_bounds(net, n_points=10, seed=seed)
    assert 0.0 <= bounds.lower <= bounds.upper
    assert bounds.upper == min(bounds.product, bounds.absolute, bounds.averaged)
    assert bounds.product == pytest.approx(
        np.prod([np.linalg.norm(layer.weight, 2) for layer in net.layers])
    )
    near = rng.standard_normal((60, net.in_features))
    far = near + 10.0 ** rng.uniform(-3, 1, (60, 1)) * rng.standard_normal(near.shape)
    slopes = np.linalg.norm(net(near) - net(far), axis=1) / np.linalg.norm(near - far, axis=1)
    assert slopes.max() <= bounds.upper * (1 + 1e-9)
    A, _ = net.local_affine(near)
    assert max(np.linalg.norm(a, 2) for a in A) <= bounds.upper * (1 + 1e-9)


def test_lower_bound_is_the_slope_of_its_witness():
    net = random_net(np.random.default_rng(0), (6, 20, 20, 3))
    bounds = lipschitz_bounds(net, box=Box.cube(6, -1, 1))
    x, other = bounds.witness
    slope = np.linalg.norm(net(x) - net(other)) / np.linalg.norm(x - other)
    assert bounds.lower == pytest.approx(slope, rel=1e-6) and bounds.lower <= slope
    assert bounds.lower > 0.3 * bounds.upper


def test_lower_bound_is_not_fooled_by_ties():
    # f(x) = relu(x) - relu(-x) = x. At 0 both preactivations are 0 and the pattern "both on" has A = 2.
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1.0]], [0])])
    A, _ = net.local_affine([0.0])
    assert A.item() == 2.0
    assert lipschitz_bounds(net, X=np.zeros((1, 1))).lower <= 1.0


def test_merged_norms_hold_where_products_cancel():
    rng = np.random.default_rng(3)
    for _ in range(20):
        W = rng.standard_normal((6, 2))
        V = np.linalg.svd(W)[0][:, 2:].T.copy()  # what W gives is 0 for V, but for rounding
        exact = [
            [sum(Fraction(a) * Fraction(b) for a, b in zip(v, w, strict=True)) for w in W.T] for v in V
        ]
        truth = np.linalg.norm(np.array(exact, dtype=float), 2)
        assert truth * (1 - 1e-12) <= _merged_norms([W, V])[1] < 1e-12


def test_proved_slopes_hold_in_rationals():
    rng = np.random.default_rng(4)
    for step in (1.0, 1e-6, 1e-12):
        for _ in range(5):
            net = random_net(rng, (3, 6, 5, 2))
            x = rng.standard_normal(3)
            other = x + step * rng.standard_normal(3)
            f, g = (net.as_fractions()(list(p)) for p in (x, other))
            rise = sum((a - b) ** 2 for a, b in zip(f, g, strict=True))
            run = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, other, strict=True))
            found = Fraction(proved_slope(net, x, other))
            assert found**2 * run <= rise
            assert step < 1e-9 or found**2 * run >= rise * Fraction(1 - 1e-3)


def test_exact_for_linear_networks():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((5, 7))
    bounds = lipschitz_bounds(ReluNetwork.from_layers([(W, rng.standard_normal(5))]))
    norm = np.linalg.norm(W, 2)
    assert bounds.lower <= norm * (1 + 1e-12) and norm <= bounds.upper * (1 + 1e-12)
    assert bounds.upper / bounds.lower < 1 + 1e-8


def test_averaged_bound_is_the_sum_over_subsets():
    rng = np.random.default_rng(0)
    W = balanced_weights([rng.standard_normal(shape) for shape in ((4, 3), (5, 4), (6, 5), (2, 6))])
    total = 0.0
    for cuts in range(8):  # bit l set: the product is cut after layer l + 1
        term, segment = 1.0, W[0]
        for layer in range(3):
            if cuts >> layer & 1:
                term, segment = term * np.linalg.norm(segment, 2), W[layer + 1]
            else:
                segment = W[layer + 1] @ segment
        total += term * np.linalg.norm(segment, 2)
    assert averaged_bound(W) == pytest.approx(total / 8, rel=1e-8)
    assert averaged_bound(W) <= norm_product(layer_spectral_norms(W)) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_renaming_and_rescaling_units_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng, (4, 9, 7, 8, 3))
    other = rescaled(net, rng)
    X = rng.standard_normal((40, 4))
    np.testing.assert_allclose(net(X), other(X), rtol=1e-9, atol=1e-9)
    a, b = lipschitz_bounds(net, X), lipschitz_bounds(other, X)
    assert a.lower == pytest.approx(b.lower, rel=1e-6)
    assert a.absolute == pytest.approx(b.absolute, rel=1e-4)
    assert a.averaged == pytest.approx(b.averaged, rel=1e-5)


def test_balancing_evens_out_every_unit_and_drops_idle_ones():
    rng = np.random.default_rng(0)
    W = [rng.standard_normal((6, 4)), 100 * rng.standard_normal((5, 6)), rng.standard_normal((2, 5))]
    W[0][2] = 0.0  # no input
    W[2][:, 1] = 0.0  # no output
    balanced = balanced_weights(W)
    for first, second in itertools.pairwise(balanced):
        np.testing.assert_allclose(
            np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=0), rtol=1e-6, atol=1e-12
        )
    assert not balanced[1][:, 2].any() and not balanced[1][1].any()


def test_constant_and_huge_networks():
    constant = ReluNetwork.from_layers([(np.zeros((3, 2)), [1, 2, 3]), (np.ones((1, 3)), [0])])
    bounds = lipschitz_bounds(constant)
    assert bounds.lower == bounds.upper == 0.0
    huge = ReluNetwork.from_layers([(np.full((2, 2), 1e200), [0, 0]), (np.full((1, 2), 1e150), [0])])
    assert lipschitz_bounds(huge).upper == np.inf


def test_a_small_budget_widens_the_interval_and_is_kept():
    net = random_net(np.random.default_rng(0), (784, 1500, 1500, 10))
    with threadpool_limits(1):  # one thread, whose seconds are those of the clock on a quiet machine
        start = time.process_time()
        hasty = lipschitz_bounds(net, budget=0.3)
        assert time.process_time() - start < 2.5
    assert 0 < hasty.lower < hasty.upper


def chain(*weights):
    return ReluNetwork.from_layers(
        [(np.atleast_2d(W), np.zeros(len(np.atleast_2d(W)))) for W in weights]
    )


ENDS_OF_FLOAT64 = [
    ("a small part of a layer", chain([[1.0], [1e-170]], [[0.0, 1.0]]), 1e-170),
    ("products that underflow", chain([[1e-200]], [[1e-200]]), 1e-400),
    ("underflow on the way", chain([[1e-200]], [[1e-200]], [[1e300]]), 1e-100),
    ("a unit that looks idle", chain([[1.0], [1e-170]], [[1.0, 1e170]]), 2.0),
    ("one huge weight", chain([[1e170]]), 1e170),
    ("the largest number", chain(np.diag([sys.float_info.max, 1.0])), sys.float_info.max),
    ("squares that underflow", chain([[1.9e-159]]), 1.9e-159),
    ("very deep", chain(*[[[0.81]]] * 1100), 0.81**1100),
    ("units in turn small", chain(*[np.diag([1, 0.1]), np.diag([0.1, 1])] * 300), 1e-300),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "net", "truth"), ENDS_OF_FLOAT64)
def test_bounds_hold_at_the_ends_of_float64(name, net, truth):
    bounds = lipschitz_bounds(net, n_points=10)
    assert np.isfinite(bounds.lower) and bounds.lower <= truth * (1 + 1e-9)
    uppers = [bounds.product, bounds.absolute, *([] if bounds.averaged is None else [bounds.averaged])]
    assert min(uppers) > 0 and min(uppers) >= truth * (1 - 1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
def test_norm_of_denormal_matrices_is_rounded_up(as_matrix):
    W = 5e-324 * np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 2.0]])
    truth = np.linalg.norm([[1.0, 1.0, 0.0], [1.0, 0.0, 2.0]], 2)
    for budget in (np.inf, 0.0):
        assert Fraction(spectral_norm(as_matrix(W), budget=budget).value) / Fraction(5e-324) >= truth


@pytest.mark.filterwarnings("error")
def test_far_away_points_are_no_trouble():
    bounds = lipschitz_bounds(chain([[1.0, 2.0]]), X=np.full((3, 2), 1e307))
    assert 2.2 < bounds.lower <= 5**0.5 <= bounds.upper


def test_the_steepest_direction_of_a_matrix_that_is_not_formed():
    rng = np.random.default_rng(0)
    sizes = [(100, 90), (120, 100), (80, 120)]
    net = ReluNetwork.from_layers([(rng.normal(size=s) / 10, rng.normal(size=s[0])) for s in sizes])
    x = rng.normal(size=90)
    A, _ = net.local_affine(x)
    norm, v = _top_direction(net, x, seed=0)
    assert norm == pytest.approx(np.linalg.norm(A, 2), rel=0.01)
    assert np.linalg.norm(A @ v) == pytest.approx(norm, rel=0.01)
