"""Mukherjee 2020, chapters 1 to 3: statements wrong as printed, beside the corrected ones."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork, equivalence
from pindown.circuits import (
    composed_zigzags,
    maximum,
    power_gap,
    zonotope_family,
    zonotope_network,
    zonotope_vertices,
)
from pindown.circuits.depth_separation import even_sawtooth, l1_distance, l1_lower_bound
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.geometry.folds.one_hidden_layer import flatten_to_one_hidden
from pindown.learn.gates import ModifiedSGDRegressor
from pindown.learn.gates.noisy_gd import gate_gradient
from pindown.learn.gates.noisy_gd_confinement import confinement


def affine(*row):
    """The function w . x + b of the plane, for (w_1, w_2, b)."""
    return ReluNetwork.from_layers([([row[:2]], [row[2]])])


def test_depth_of_a_maximum_needs_its_ceiling():
    """Lemma 2.A.4: depth log(m) + 1 for three affine functions is 2.58, hence 2; that is impossible."""
    three = [affine(0.0, 0.0, 0.0), affine(1.0, 0.0, 0.0), affine(0.0, 1.0, 0.0)]
    found = maximum(three).network
    printed = math.floor(0 + math.log2(3) + 1)
    assert found.depth == math.ceil(math.log2(3)) + 1 == 3 > printed == 2
    assert flatten_to_one_hidden(found).representable is False  # so no network of depth 2 does it


def test_the_sketch_counts_hidden_layers_as_depth():
    """Sketch of Theorem 2.2.1: n + 1 numbers at depth ceil(log2(n + 1)); for two an affine map."""
    found = maximum([affine(1.0, 0.0, 0.0), affine(0.0, 1.0, 0.0)]).network
    printed = math.ceil(math.log2(2))
    assert found.depth == printed + 1 == 2
    ends, middle = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5])
    assert found(middle).item() < found(ends).mean()  # not affine, so depth 1 does not do


@pytest.mark.parametrize("k", [2, 3])
def test_parameters_of_the_hard_family_are_a_product_of_simplices(k):
    """Corollaries 2.3.3, 2.3.4: one simplex of dimension k^3 - 1; each of k^2 layers has its own."""
    gap = power_gap(k, 1)
    layers, own = gap.layers, k - 1
    peaks = [[Fraction(i, k) for i in range(1, k)]] * layers
    net = composed_zigzags(peaks)
    assert len(net.layers) == layers + 1 == k**2 + 1
    assert layers * own == sum(map(len, peaks)) != k**3 - 1
    # Every layer's numbers ascend by themselves; one after the other they are no point of a simplex.
    one_list = [number for own_peaks in peaks for number in own_peaks]
    with pytest.raises(ValueError, match="a zigzag needs numbers"):
        composed_zigzags([one_list])


@pytest.mark.parametrize(("w", "k"), [(2, 1), (2, 3), (4, 2)])
def test_the_distance_from_a_sawtooth_can_be_delta_itself(w, k):
    """Theorem 2.3.6: more than delta; at delta = 1/4 the constant 1/2 is exactly that far away."""
    saw = PiecewiseLinear1D.from_network(even_sawtooth(w, k))
    half = PiecewiseLinear1D([0], [Fraction(1, 2)], 0, 0)
    delta = Fraction(1, 4)
    allowed = k * w**k * (1 - 4 * delta)  # ReLUs, up to a constant: none, so g is affine
    assert allowed == 0 and half.n_pieces == 1
    assert l1_distance(saw, half) == delta == l1_lower_bound(w, k, pieces=1)


def test_networks_of_zonotopes_are_support_functions_not_gauges():
    """Chapter 1: the gauge of [-2, 2] at 1 is 1/2; the network gives 2, the largest product."""
    net = zonotope_network([[2.0]])
    r = np.array([1.0])
    gauge = min(t for t in np.linspace(0.01, 3, 300) if abs(r[0] / t) <= 2 + 1e-9)
    assert gauge == pytest.approx(0.5)
    assert net(r).item() == 2.0 == (zonotope_vertices([[2.0]]) @ r).max()


def test_generators_are_determined_up_to_order_and_sign_only():
    """Theorem 2.3.10 (iii): one-to-one; but turned and reordered generators give the same function."""
    B = np.array([[1.0, 0.5], [0.25, -1.0], [-0.5, 0.75]])
    other = -B[[2, 0, 1]]
    peaks = [[0.5], [0.25]]
    one, two = zonotope_family(peaks, B), zonotope_family(peaks, other)
    assert not np.array_equal(B, other)
    assert equivalence.diff(one, two, budget=20).verdict == "same"


def test_the_update_in_the_proof_has_the_wrong_sign():
    """Proof of Theorem 3.3.1: w + eta g; with alpha < 0 it runs away, w - eta g arrives."""
    true, alpha, eta = np.array([1.0, -2.0, 0.5]), -1.0, 0.05
    X = np.random.default_rng(1).standard_normal((600, 3))
    y = np.maximum(X @ true, 0.0)
    ends = []
    for sign in (1, -1):
        w = np.zeros(3)
        for x, label in zip(X, y, strict=True):
            w = w + sign * eta * (alpha * (label > 0) * (label - w @ x) * x)
        ends.append(np.linalg.norm(w - true))
    assert ends[1] < 1e-3
    assert ends[0] > 100
    model = ModifiedSGDRegressor(eps=1e-3).fit(X, y)
    assert np.linalg.norm(model.coef_ - true) <= model.error_bound_ <= 1e-3


def test_the_pull_near_the_truth_is_of_first_order():
    """Proof of Theorem 3.4.1: |g| <= C^2 r^2 within r of w*; for r < 1 it is C^2 r that bounds it."""
    X, true, r = np.array([[1.0, 0.0]]), np.array([2.0, 0.0]), 0.1
    pull = np.linalg.norm(gate_gradient(true + r * X[0], X, np.maximum(X @ true, 0)))
    assert pull > r**2 and pull <= r * (1 + 1e-12)
    assert pull == pytest.approx(r)


def test_noisy_descent_stays_around_the_truth_not_around_the_origin():
    """Remark on Theorem 3.4.1: a ball around the origin; the confined distance is that to w*."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2))
    X /= np.linalg.norm(X, axis=1).max()
    true, eta, steps, noise = np.array([30.0, 40.0]), 1e-3, 200, 0.05
    ball = confinement(
        1.0,
        start_distance=0.0,
        largest_norm=1.0,
        step=eta,
        n_steps=steps,
        gradient_noise=0.0,
        second_moment=2 * noise**2,
        cut=1.0,
        tail=0.0,
    )
    w = true.copy()
    for _ in range(steps):
        w = w - eta * gate_gradient(w, X, np.maximum(X @ true, 0))
        w = w + math.sqrt(eta) * noise * rng.standard_normal(2)
        assert np.linalg.norm(w - true) <= ball.radius < 2
        assert np.linalg.norm(w) > 10 * ball.radius
