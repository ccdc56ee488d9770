"""The proved gap against exact arithmetic, with weights from denormal to almost infinite."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.shrinking import shrink
from pindown.network import ReluNetwork
from tests.equivalence.shrinking.redundancy import KINDS, redundant

MODERATE = [0, 0, 1, -1, 2, -2, 0.5, 3, -3, 0.1, -0.1, 1 / 3, 1e16, 1e8, 1 + 2.0**-52]
EXTREME = [1e-300, -1e-300, 5e-324, 7e-310, 1e150, -1e150, 1e-150, 1e300]
POOL = np.array([*MODERATE, *EXTREME])


def hard_net(rng):
    """Return a small network with few distinct weights, so that ties, copies and opposites abound."""
    widths = [int(rng.integers(1, 3)), *rng.integers(1, 6, rng.integers(1, 4)).tolist(), 1]
    few = rng.choice(POOL, size=rng.integers(2, 8))
    net = ReluNetwork.from_layers(
        (rng.choice(few, (m, n)), rng.choice(few, m)) for n, m in pairwise(widths)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            return redundant(net, rng, rng.choice(list(KINDS), size=rng.integers(0, 3)).tolist())
        except ValueError:  # what was put in left float64
            return net


def within(difference, bound, x, relative):
    """Whether ``difference <= bound (1 + ||x||)``, or ``<= bound``, in exact arithmetic."""
    limit = Fraction(bound)
    if difference <= limit:
        return True
    squared = sum(Fraction(float(v)) ** 2 for v in x)
    return relative and limit > 0 and (difference / limit - 1) ** 2 <= squared


@pytest.mark.parametrize("tol", [0.0, 1e-3])
@pytest.mark.parametrize("with_box", [False, True])
def test_gaps_contain_the_truth(tol, with_box):
    steps = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        net = hard_net(rng)
        d = net.in_features
        low, high = np.sort(rng.choice(POOL[:12], 2))
        box = Box.cube(d, low, high) if with_box else None
        result = shrink(net, box=box, tol=tol, budget=0.5)
        steps += len(result.steps)
        f, g = net.as_fractions(), result.network.as_fractions()
        for _ in range(5):
            x = rng.choice([low, high, low / 2 + high / 2], d) if with_box else rng.choice(POOL, d)
            difference = max(abs(p - q) for p, q in zip(f(x), g(x), strict=True))
            assert within(difference, result.gap_upper, x, not with_box), seed
    assert steps > 40


@pytest.mark.parametrize("outputs", [1, 3])  # one: carried row by row; three: input by input
@pytest.mark.parametrize("with_box", [False, True])
def test_a_linear_map_that_rounds_to_zero_is_charged(outputs, with_box):
    # 3 (x / 3 + y) - (x + 3 y) is zero in float64, not in exact arithmetic: a third is rounded down.
    linear, reads = np.array([[1 / 3, 1.0], [1.0, 3.0], [0.0, 1.0]]), [3.0, -1.0, 0.0]
    if outputs > 1:
        reads[2] = 1.0  # and y
    bias = [8.0] * 3
    if not with_box:  # a linear function is a difference of two ReLUs
        linear, reads, bias = np.vstack([linear, -linear]), [*reads, *np.negative(reads)], [0.0] * 6
    first = np.vstack([linear, [1.0, 1.0]]), [*bias, 0.5]
    net = ReluNetwork.from_layers([first, ([[*reads, 1.0]] * outputs, [0.0] * outputs)])
    result = shrink(net, box=Box.cube(2, -1, 1) if with_box else None)
    assert result.network.size < net.size
    gap = abs(net.as_fractions()([-1, 0])[0] - result.network.as_fractions()([-1, 0])[0])
    assert 0 < gap <= Fraction(result.gap_upper) * (1 if with_box else 2)


def test_rounding_of_a_linear_map_is_charged_where_inputs_are_far_from_zero():
    """Units that carry an input as ``x - lower`` are small there; the map's rounding times x is not."""
    rng = np.random.default_rng(0)
    for _ in range(80):
        first, lower = -rng.uniform(0.1, 1.0, 2), float(-rng.uniform(10, 90))
        rows = np.column_stack([first, np.nextafter(first, 0.0)]).reshape(-1, 1)
        factors = rng.normal(size=(3, 2)) * 10.0 ** rng.integers(1, 7)
        cancelling = (factors[:, :, None] * [1.0, -1.0]).reshape(3, 4)
        net = ReluNetwork.from_layers(
            [
                (rows, np.repeat(rng.normal(size=2), 2)),
                (cancelling, np.zeros(3)),
                (rng.normal(size=(4, 3)), np.zeros(4)),
                (rng.normal(size=(2, 4)), np.zeros(2)),
            ]
        )
        answer = shrink(net, box=([lower], [lower]), budget=5)
        exact, ours = net.as_fractions()([lower]), answer.network.as_fractions()([lower])
        assert max(abs(a - b) for a, b in zip(exact, ours, strict=True)) <= Fraction(answer.gap_upper)
