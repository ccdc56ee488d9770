"""Distances from a sawtooth: exact integrals, and no comparator below the bound."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import minimize

from pindown.circuits.depth_separation import (
    even_sawtooth,
    hard_size,
    l1_distance,
    l1_lower_bound,
    telgarsky_comparison,
)
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.geometry.counts.bounds import max_pieces


def sawtooth(w, k):
    return PiecewiseLinear1D.from_network(even_sawtooth(w, k))


def random_function(rng, p):
    knots = sorted(
        Fraction(int(v), 64) for v in rng.choice(np.arange(1, 64), max(p - 1, 1), replace=False)
    )
    values = [Fraction(int(v), 8) for v in rng.integers(-4, 12, len(knots))]
    left, right = (Fraction(int(v), 2) for v in rng.integers(-4, 5, 2))
    return PiecewiseLinear1D(knots, values, left, left if p == 1 else right)


def test_integrals_agree_with_quadrature():
    rng = np.random.default_rng(0)
    x = np.linspace(-0.5, 2, 160_001)  # all knots are points of this grid
    for _ in range(20):
        f, g = random_function(rng, 4), random_function(rng, 5)
        exact = l1_distance(f, g, Fraction(-1, 2), 2)
        numeric = trapezoid(np.abs(f(x) - g(x)), x)
        assert isinstance(exact, Fraction) and float(exact) == pytest.approx(numeric, abs=1e-7)
        assert l1_distance(f.rounded(), g, -0.5, 2) == pytest.approx(float(exact), abs=1e-12)
        assert l1_distance(g, f, Fraction(-1, 2), 2) == exact and l1_distance(f, f) == 0


def test_the_best_affine_fit_of_a_triangle():
    """On one triangle of width 2/q the constant 1/2 is best, at a cost of 1 / (2 q)."""
    for q in (2, 4, 10):
        tooth = PiecewiseLinear1D([0, Fraction(1, q)], [0, 1], q, -q)
        half = PiecewiseLinear1D([0], [Fraction(1, 2)], 0, 0)
        assert l1_distance(tooth, half, 0, Fraction(2, q)) == Fraction(1, 2 * q)
    rng = np.random.default_rng(1)
    tooth = PiecewiseLinear1D([0, Fraction(1, 2)], [0, 1], 2, -2)
    for _ in range(200):
        y, s = (Fraction(int(v), 16) for v in rng.integers(-16, 33, 2))
        assert l1_distance(tooth, PiecewiseLinear1D([0], [y], s, s)) >= Fraction(1, 4)


@pytest.mark.parametrize(("w", "k"), [(2, 3), (3, 2), (2, 4), (5, 1)])
def test_random_functions_stay_above_the_bound(w, k):
    rng = np.random.default_rng(w + k)
    s = sawtooth(w, k)
    for _ in range(100):
        g = random_function(rng, int(rng.integers(1, 6)))
        p = g.on(0, 1)
        bound = l1_lower_bound(w, k, p)
        assert l1_distance(s, g) >= bound >= Fraction(1, 4) - Fraction(2 * p - 1, 4 * w**k)


@pytest.mark.parametrize(("w", "k", "p"), [(2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 2), (2, 4, 3)])
def test_optimised_functions_stay_above_the_bound(w, k, p):
    """Free knots and values, from several starts: as near as an optimiser gets, and not nearer."""
    s = sawtooth(w, k).rounded()
    rng = np.random.default_rng(p)

    def function(theta):
        knots = np.concatenate([[0.0], np.sort(np.clip(theta[: p - 1], 1e-6, 1 - 1e-6)), [1.0]])
        knots = np.maximum.accumulate(knots + 1e-9 * np.arange(p + 1))
        return PiecewiseLinear1D.from_points(knots, theta[p - 1 :])

    def loss(theta):
        return l1_distance(s, function(theta))

    starts = [np.concatenate([rng.uniform(0, 1, p - 1), np.full(p + 1, 0.5)]) for _ in range(3)]
    found = min(
        minimize(loss, start, method="Nelder-Mead", options={"maxfev": 250}).fun for start in starts
    )
    bound = float(l1_lower_bound(w, k, p))
    assert found >= bound - 1e-9
    if p == 1 and w % 2 == 0:
        assert found == pytest.approx(bound, abs=1e-6)  # the constant 1/2 meets it


@pytest.mark.parametrize(("w", "k"), [(2, 4), (3, 3), (2, 10)])
@pytest.mark.parametrize("error", [Fraction(1, 100), Fraction(1, 8), 0.2])
def test_networks_up_to_the_hard_size_have_too_few_pieces(w, k, error):
    for shallow in range(1, k + 1):
        hard = hard_size(w, k, shallow, error)
        assert hard >= hard_size(w, k, shallow, error, variant="as_printed") or hard == 0
        if hard:
            assert l1_lower_bound(w, k, max_pieces(hard, shallow)) >= Fraction(error)
        delta = float(error)
        printed = shallow * w ** (k / shallow) * (1 - 4 * delta) ** (1 / shallow)
        printed /= 2 ** (1 + 1 / shallow)
        assert hard_size(w, k, shallow, error, variant="as_printed") == int(printed + 1e-9)


def test_comparison_grows_with_the_square():
    for k in (2, 3, 5, 8):
        found = telgarsky_comparison(k)
        assert found.telgarsky == 2**k and found.deep_size == 2 * k**3
        assert k * k - 1 <= found.least.bit_length() <= k * k + k
    assert "earlier bound" in str(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: l1_distance(sawtooth(2, 1), sawtooth(2, 1), 1, 1), "lower < upper"),
        (lambda: l1_lower_bound(2, 3, 0), "pieces must be"),
        (lambda: l1_lower_bound(1, 3, 1), "width must be"),
        (lambda: hard_size(2, 3, 1, Fraction(1, 4)), "between 0 and 1/4"),
        (lambda: hard_size(2, 3, 4, Fraction(1, 8)), "layers must be an integer of at least 4"),
        (lambda: telgarsky_comparison(0), "k must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
