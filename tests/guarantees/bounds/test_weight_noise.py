"""The bound for noisy weights, written out once more with exact error rates and a root finder."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from pindown.guarantees.bounds import WeightList, weight_noise_bound

W, START = np.array([1.5, -0.5, 1.0]), np.array([1.0, 0.0, 1.0])
M, DRAWS, DELTA = 400, 400, 0.1


def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, 3))
    return X, ((X @ W > 0) ^ (rng.random(M) < 0.1)).astype(int)


def inverse(risk, level):
    """The largest p with kl(risk, p) of at most the level."""

    def excess(p):
        near = risk * math.log(risk / p) if risk else 0.0
        return near + (1 - risk) * math.log((1 - risk) / (1 - p)) - level

    top = 1 - 1e-13
    return brentq(excess, risk, top, xtol=1e-15) if excess(top) > 0 else 1.0


def scales():
    """The fixed scales 2^(i / 16) below six shares of the typical weight, with the exponents i."""
    typical = np.linalg.norm(W) / math.sqrt(3)
    shares = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
    exponents = [math.floor(16 * math.log2(typical * share)) for share in shares]
    return {2 ** (i / 16): i for i in exponents}


def written_out(scale, error, squared_distance):
    risk = inverse(error, math.log(6 / (0.2 * DELTA)) / DRAWS)
    cost = math.log(2.3 * (1 + abs(scales()[scale])) ** 2)
    kl = squared_distance / (2 * scale**2)
    return inverse(risk, (kl + math.log(2 * math.sqrt(M) / (0.8 * DELTA)) + cost) / M)


def exact_error(scale, X, y):
    """Noise moves a score by a normal number of deviation scale times the length of the input."""
    right = np.where(y == 1, 1.0, -1.0) * (X @ W)
    return float(np.mean(norm.cdf(-right / (scale * np.linalg.norm(X, axis=1)))))


@pytest.mark.parametrize("start", [None, START])
def test_from_its_formula(start):
    X, y = sample()
    given = None if start is None else WeightList("given", (start[None],))
    found = weight_noise_bound(
        WeightList("given", (W[None],)), X, y, delta=DELTA, start=given, n_draws=DRAWS
    )
    squared = float(np.sum((W - (0.0 if start is None else start)) ** 2))
    scale = found.terms["scale"]
    assert scale in scales()
    assert found.value == pytest.approx(
        written_out(scale, found.terms["error of the draws"], squared), rel=1e-8
    )
    errors = {each: exact_error(each, X, y) for each in scales()}
    assert found.terms["error of the draws"] == pytest.approx(errors[scale], abs=0.02)
    best = min(written_out(each, error, squared) for each, error in errors.items())
    assert found.value == pytest.approx(best, abs=0.02)
    assert found.delta == DELTA and found.kind == "probability" and not found.vacuous
