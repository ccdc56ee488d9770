"""The worst case itself is iterated: below the target at the given time and above it before."""

import math

import numpy as np
import pytest

from pindown.learn.gates import solve_recursion


def worst_case(solution, b, c1, c2, start, n):
    X = start
    for _ in range(n - 1):
        X = (1 - solution.step * b + solution.step**2 * c1) * X + solution.step**2 * c2
    return X


def check_time(b, c1, c2, start, target):
    found = solve_recursion(b, c1, start=start, target=target, noise=c2)
    assert worst_case(found, b, c1, c2, start, found.n_steps) <= target * (1 + 1e-9)
    if found.n_steps > 2:
        assert worst_case(found, b, c1, c2, start, found.n_steps - 1) > target * (1 - 1e-9)
    assert 0 <= found.contraction < 1
    assert found.limit < target
    return found


@pytest.mark.parametrize("seed", range(60))
def test_without_noise(seed):
    rng = np.random.default_rng(seed)
    b = rng.uniform(0.05, 3)
    check_time(b, b**2 / 4 * rng.uniform(1.01, 30), 0.0, rng.uniform(0.1, 50), 10 ** rng.uniform(-6, 0))


@pytest.mark.parametrize("seed", range(60))
def test_with_noise(seed):
    rng = np.random.default_rng(seed)
    b, target = rng.uniform(0.2, 3), 10 ** rng.uniform(-2, 0)
    c1 = b**2 / 4 * rng.uniform(1.01, 10)
    found = check_time(b, c1, c1 * rng.uniform(0.01, 0.99), target * rng.uniform(1, 100), target)
    assert found.rule == "published"


@pytest.mark.parametrize("seed", range(30))
def test_noise_above_the_published_condition(seed):
    rng = np.random.default_rng(seed)
    b, target = rng.uniform(0.2, 3), 10 ** rng.uniform(-2, 0)
    c1 = b**2 / 4 * rng.uniform(1.01, 10)
    assert check_time(b, c1, c1 * rng.uniform(1, 5), target * 20, target).rule == "general"


def test_time_is_the_printed_formula():
    b, c1, c2, C, e2 = 0.7, 0.9, 0.4, 5.0, 0.2
    alpha = 1 - b**2 / c1 * e2 / (1 + e2) ** 2
    printed = 1 + math.log(e2 * (c1 - c2) / (C * c1 - c2 * e2)) / math.log(alpha)
    assert solve_recursion(b, c1, start=C, target=e2, noise=c2).time == pytest.approx(printed, rel=1e-12)


def test_ends():
    assert solve_recursion(1, 1, start=0.5, target=1).n_steps == 1
    assert solve_recursion(1, 1, start=0, target=1).n_steps == 1
    one_sample = solve_recursion(2, 1, start=9, target=1e-9)
    assert (one_sample.contraction, one_sample.n_steps) == (0, 2)
    assert "t = 2" in str(one_sample)


@pytest.mark.parametrize(
    "bad",
    [{"decay": 0}, {"growth": -1}, {"start": -1}, {"target": 0}, {"noise": -1}, {"decay": np.nan}],
)
def test_bad_numbers_are_refused(bad):
    good = {"decay": 1.0, "growth": 1.0, "start": 1.0, "target": 0.1, "noise": 0.0}
    with pytest.raises(ValueError, match=next(iter(bad))):
        solve_recursion(**{**good, **bad})


def test_growth_that_no_positive_sequence_has_is_refused():
    with pytest.raises(ValueError, match="at least decay"):
        solve_recursion(4.0, 1.0, start=1.0, target=0.1)


def test_a_contraction_that_rounds_to_one_still_has_its_time():
    found = solve_recursion(1e-12, 1.0, start=1.0, target=0.1)
    assert found.time == pytest.approx(np.log(10) * 4e24)
    with pytest.raises(ValueError, match="underflows"):
        solve_recursion(1e-300, 1.0, start=1.0, target=0.1)
