"""The multiplier bound against exact maxima, other multipliers, and its own derivative."""

import itertools

import numpy as np
import pytest

from pindown.equivalence.sensitivity._multipliers import (
    SourceChain,
    best_multipliers,
    evaluate,
    proved_bounds,
)


def random_chain(rng, *, moving, layers=2, fixed=True):
    widths = rng.integers(2, 5, layers + 1)
    weights = tuple(rng.standard_normal((m, n)) for n, m in itertools.pairwise(widths))
    n = int(rng.integers(1, 4)) if moving else 0
    s = rng.standard_normal(widths[0]) * float(fixed)
    r = rng.random(n) + 0.1
    length = 0.7 * float(np.linalg.norm(r))
    return SourceChain(
        s, rng.standard_normal((widths[0], n)), r, length, weights, rng.standard_normal((2, widths[-1]))
    )


def largest(chain, rng):
    """Search the relaxed problem: v at random, slopes by improving one layer at a time."""
    best = np.zeros(chain.objectives.shape[1])
    n = chain.matrix.shape[1]
    for _ in range(60):
        v = rng.uniform(-1, 1, n) * chain.entries
        v *= min(1.0, chain.length / max(np.linalg.norm(v), 1e-300)) if n else 1.0
        s = chain.fixed + chain.matrix @ v
        for k, w in enumerate(chain.objectives.T):
            slopes = [
                rng.integers(0, 2, len(s)) * 1.0,
                *(rng.integers(0, 2, len(W)) * 1.0 for W in chain.weights),
            ]
            for _ in range(10):
                back = [w]
                for W, slope in zip(reversed(chain.weights), reversed(slopes[1:]), strict=True):
                    back.append(W.T @ (slope * back[-1]))
                z = s
                for i, g in enumerate(reversed(back)):
                    slopes[i] = (g * z > 0) * 1.0
                    e = slopes[i] * z
                    z = chain.weights[i] @ e if i < len(chain.weights) else e
                best[k] = max(best[k], float(w @ e))
    return best


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_proved_bounds_hold_for_any_multipliers(seed, layers, moving, fixed):
    if not (moving or fixed):
        return
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, moving=moving, layers=layers, fixed=fixed)
    low = largest(chain, rng)
    x = best_multipliers(chain)
    bounds = proved_bounds(chain, x)
    assert np.all(low <= bounds) and np.max(bounds) <= 4 * np.max(low)
    np.testing.assert_allclose(bounds, evaluate(chain, x)[0], rtol=1e-6)
    other = x * np.exp(0.1 * rng.standard_normal(len(x)))
    assert np.all(low <= proved_bounds(chain, other))


@pytest.mark.parametrize("moving", [False, True])
def test_derivatives_are_those_of_the_bound(moving):
    rng = np.random.default_rng(0)
    chain = random_chain(rng, moving=moving)
    x = 1.3 * best_multipliers(chain)
    values, slopes = evaluate(chain, x)
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = 1e-6 * x[i]
        difference = evaluate(chain, x + step)[0] - evaluate(chain, x - step)[0]
        np.testing.assert_allclose(
            difference / (2 * step[i]), slopes[i], rtol=1e-3, atol=1e-6 * values.max() / x[i]
        )


def test_multipliers_that_are_too_small_prove_nothing():
    rng = np.random.default_rng(0)
    chain = random_chain(rng, moving=True)
    x = best_multipliers(chain)
    x[chain.sizes[0] + chain.sizes[1] :] *= np.repeat([1.0, 1e-3, 1.0], chain.sizes[2:])
    assert np.all(proved_bounds(chain, x) == np.inf)
    assert np.all(proved_bounds(chain, np.full(len(x), np.nan)) == np.inf)
    assert np.all(proved_bounds(chain, np.full(len(x), 1e-300)) == np.inf)
