"""The price of a function in ReLUs and in units that saturate, and what the slides have wrong."""

import numpy as np
import pytest

from pindown.bias.frequency_penalty import (
    activation_price,
    frequency_weight,
    n_terms,
    saturating_density,
    spectral_price,
    superpose,
)

WIDTH, LENGTH = 0.8, 4.0
POINTS = np.array([0.4, 1.1, 2.0, 2.9, 3.7])


def f(x):
    """A bump that is smooth at zero to the fifth order, and its second derivative."""
    x = np.clip(x, 0, 2)
    return x**6 * (2 - x) ** 6


def second(x):
    inside = (x > 0) & (x < 2)
    p = np.polynomial.Polynomial.fromroots([0] * 6 + [2] * 6).deriv(2)
    return np.where(inside, p(np.where(inside, x, 1.0)), 0.0)


def transform(k):
    nodes, weights = np.polynomial.legendre.leggauss(100)
    x = nodes + 1
    return np.exp(-1j * np.outer(k, x)) @ (weights * f(x))


def test_relus_reproduce_the_function():
    np.testing.assert_allclose(superpose(second, POINTS, breaks=[0.0, 2.0]), f(POINTS), atol=1e-11)


@pytest.mark.parametrize("width", [0.37, 0.8, 1.5, 4.0, 9.0])
def test_saturating_units_reproduce_the_function(width):
    terms = n_terms(LENGTH, width)
    breaks = np.concatenate([end + width * np.arange(terms) for end in (0.0, 2.0)])
    density = saturating_density(second, width, terms)
    np.testing.assert_allclose(
        superpose(density, POINTS, breaks=breaks, width=width), f(POINTS), atol=1e-11
    )
    if width >= LENGTH:  # one term: the same density, scaled
        np.testing.assert_allclose(density(POINTS), width * second(POINTS))


def test_printed_constant_is_off_by_the_square_of_the_width():
    terms = n_terms(LENGTH, WIDTH)
    breaks = np.concatenate([end + WIDTH * np.arange(terms) for end in (0.0, 2.0)])
    ours = saturating_density(second, WIDTH, terms)

    def printed(beta):  # the sum over f''/w
        return np.asarray(ours(beta)) / WIDTH**2

    wrong = superpose(printed, [1.1], breaks=breaks, width=WIDTH)
    assert wrong[0] / f(1.1) == pytest.approx(1 / WIDTH**2) == pytest.approx(1.5625)
    assert superpose(ours, [1.1], breaks=breaks, width=WIDTH)[0] == pytest.approx(f(1.1), rel=1e-11)


def test_printed_translation_goes_the_wrong_way():
    """Shifts to x + w, as defined on the slides, use f'' on the wrong side."""
    terms = n_terms(LENGTH, WIDTH)
    breaks = np.concatenate([end + WIDTH * np.arange(-terms, terms) for end in (0.0, 2.0)])

    def printed(beta):
        return WIDTH * sum(second(beta + n * WIDTH) for n in range(terms))

    wrong = superpose(printed, POINTS, breaks=breaks, width=WIDTH)
    assert np.abs(wrong - f(POINTS)).max() > 0.1


@pytest.mark.parametrize("width, length", [(0.8, 4.0), (0.5, 2.0), (5.0, 4.0)])
def test_prices_in_space_and_in_frequency_agree(width, length):
    price = activation_price(second, width, (0.0, 2.0), length=length)
    by_frequency = spectral_price(transform, width, price.terms, cutoff=60.0)
    assert price.saturating == pytest.approx(by_frequency, rel=1e-6)
    assert price.relu == pytest.approx(spectral_price(transform, None, 1, cutoff=60.0), rel=1e-6)
    assert price.terms == n_terms(length, width)
    if price.terms == 1:
        assert price.ratio == pytest.approx(width**2)


def test_printed_price_has_the_inverse_square_and_no_constant():
    price = activation_price(second, WIDTH, (0.0, 2.0), length=LENGTH)
    ours = spectral_price(transform, WIDTH, price.terms, cutoff=60.0)
    printed = 2 * np.pi * ours / WIDTH**4  # k^4 / w^2 and no 1 / 2 pi
    assert price.saturating == pytest.approx(ours, rel=1e-6)
    assert printed / price.saturating > 10


def test_density_is_the_only_one_on_a_grid():
    """Fit densities of both units on a grid by least squares: the same function of the offset."""
    width, m = 0.8, 400
    x = np.linspace(0, 2, m + 1)[1:]
    centres = x - (x[1] - x[0]) / 2
    units = np.clip(x[:, None] - centres[None, :], 0, width) / width * (x[1] - x[0])
    fitted = np.linalg.lstsq(units, f(x), rcond=None)[0]
    exact = saturating_density(second, width, n_terms(2.0, width))(centres)
    assert np.abs(fitted - exact).max() < 0.02 * np.abs(exact).max()


def test_comb():
    k = np.linspace(-30, 30, 1001)
    sums = np.abs(sum(np.exp(1j * n * 0.7 * k) for n in range(5))) ** 2
    np.testing.assert_allclose(frequency_weight(k, 0.7, 5), 0.49 * sums, atol=1e-10)
    teeth = 2 * np.pi / 0.7 * np.arange(-3, 4)
    np.testing.assert_allclose(frequency_weight(teeth, 0.7, 5), 0.49 * 25, rtol=1e-9)


def test_nothing_costs_nothing_and_bad_input():
    flat = activation_price(np.zeros_like, 1.0, (0.0, 1.0))
    assert flat.relu == flat.saturating == 0 and np.isnan(flat.ratio)
    assert superpose(second, [-1.0], breaks=[0.0]).tolist() == [0.0]
    for call in (
        lambda: n_terms(1.0, 0.0),
        lambda: n_terms(-1.0, 1.0),
        lambda: saturating_density(second, 1.0, 0),
        lambda: activation_price(second, 1.0, (1.0, 0.0)),
        lambda: activation_price(second, 1.0, (0.0, np.nan)),
        lambda: superpose(second, [np.nan], breaks=[0.0]),
        lambda: superpose(second, [1.0], breaks=[]),
        lambda: frequency_weight([1.0], -1.0, 2),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
