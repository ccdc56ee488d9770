"""Losses of the margin: derivatives, bounds, extreme margins, the tie."""

import numpy as np
import pytest

from pindown.learn.margins import HINGE, LOGISTIC, probability, zero_one

GRID = np.linspace(-6, 6, 101) + 0.003


@pytest.mark.parametrize("loss", [LOGISTIC, HINGE])
def test_derivatives(loss):
    h = 1e-5
    np.testing.assert_allclose(
        loss.slope(GRID), (loss.value(GRID + h) - loss.value(GRID - h)) / (2 * h), atol=1e-8
    )
    np.testing.assert_allclose(
        loss.curvature(GRID), (loss.slope(GRID + h) - loss.slope(GRID - h)) / (2 * h), atol=1e-8
    )


def test_convex_losses_lie_above_the_mistakes():
    assert (LOGISTIC.value(GRID) / np.log(2) >= zero_one(GRID)).all()
    assert (HINGE.value(GRID) >= zero_one(GRID)).all()


def test_huge_margins():
    u = np.array([-1e4, 1e4])
    np.testing.assert_allclose(LOGISTIC.value(u), [1e4, 0])
    np.testing.assert_allclose(LOGISTIC.slope(u), [-1, 0])
    np.testing.assert_allclose(LOGISTIC.curvature(u), [0, 0])
    np.testing.assert_allclose(probability(u), [0, 1])


def test_identities_of_the_logistic_function():
    np.testing.assert_allclose(probability(-GRID), 1 - probability(GRID), atol=1e-15)
    np.testing.assert_allclose(LOGISTIC.value(GRID), -np.log(probability(GRID)), rtol=1e-12)


def test_printed_indicator_counts_a_tie_as_correct():
    def printed(u):
        return (np.asarray(u) < 0).astype(float)

    def printed_cases(y, f):  # zero if the sign of f is y, else one
        return float(np.sign(f) != y)

    assert printed(0.0) == 0.0
    assert printed_cases(1, 0.0) == 1.0
    assert zero_one(0.0) == printed_cases(1, 0.0) == printed_cases(-1, 0.0)
