"""Boxes hold what they say, and refuse what is no box."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from pindown.box import as_box
from pindown.geometry import Box
from pindown.rounding import (
    add_down,
    add_up,
    fraction_down,
    fraction_up,
    gamma,
    norm_down,
    norm_up,
    product_up,
    two_product,
    two_sum,
)


def test_center_and_radius_cover_the_box_exactly():
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1e-3, 1.0, 1e8, 1e300):
        corners = np.sort(scale * rng.standard_normal((2, 50)), axis=0)
        box = Box(*corners)
        for numbers in zip(box.lower, box.upper, box.center, box.radius, strict=True):
            low, high, center, radius = map(Fraction, numbers)
            assert center - radius <= low and high <= center + radius


def test_radius_of_a_plain_box_is_plain():
    np.testing.assert_array_equal(Box([-1, 0, 3], [1, 4, 3]).radius, [1, 2, 0])


def test_radius_of_the_widest_box_is_a_number():
    large = 2.0**1023
    box = Box([-large, large], [large, 1.5 * large])
    np.testing.assert_array_equal(box.center, [0, 1.25 * large])
    np.testing.assert_array_equal(box.radius, [large, large / 4])


def test_samples_are_uniform():
    points = Box([-3, 5], [1, 6]).sample(4000, np.random.default_rng(0))
    for column, low, width in zip(points.T, (-3, 5), (4, 1), strict=True):
        assert stats.kstest(column, "uniform", (low, width)).pvalue > 1e-3


def test_around_contains_the_data_and_touches_it():
    X = np.random.default_rng(1).standard_normal((30, 4))
    box = Box.around(X)
    assert box.contains(X).all()
    assert not Box(box.lower + 1e-9, box.upper).contains(X).all()


def test_samples_lie_inside_also_in_flat_and_wide_boxes():
    rng = np.random.default_rng(0)
    box = Box([0.1, -1e308, 1.0], [0.1, 1e308, np.nextafter(1.0, 2.0)])
    assert box.contains(box.sample(200, rng)).all()
    assert (
        box.sample(5, np.random.default_rng(3)).tolist()
        == box.sample(5, np.random.default_rng(3)).tolist()
    )


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0, 2], [1, 1], "coordinate 1 has lower 2 > upper 1"),
        ([0], [1, 2], "equal length; got 1 and 2"),
        ([], [], "d >= 1"),
        ([np.nan], [1], "lower must be finite"),
        ([0], [np.inf], "upper must be finite"),
        ([[0]], [[1]], "shape"),
    ],
)
def test_what_is_no_box_is_refused(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Box(lower, upper)


def test_box_is_a_value():
    box = Box.cube(3, -1, 1)
    assert box == Box([-1, -1, -1], [1, 1, 1]) and hash(box) == hash(Box.cube(3, -1, 1))
    assert box != Box.cube(2, -1, 1) and box != "box"
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 5


def test_as_box_takes_pairs_and_names_what_does_not_fit():
    assert as_box((0, 1), 2) == Box.cube(2, 0, 1)
    for wrong in (5, (1, 2, 3), "ab", (0, "x")):
        with pytest.raises(ValueError, match=r"pair \(lower, upper\)"):
            as_box(wrong, 2)
    with pytest.raises(ValueError, match="the box has 3 dimensions; the network takes 2"):
        as_box(Box.cube(3, 0, 1), 2)


def test_directed_sums_and_gamma_against_rationals():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 200)) * 10.0 ** rng.integers(-20, 20, (2, 200))
    for x, y, up, down in zip(a, b, add_up(a, b), add_down(a, b), strict=True):
        exact = Fraction(x) + Fraction(y)
        assert Fraction(down) <= exact <= Fraction(up)
        assert up <= np.nextafter(down, np.inf)
    u = Fraction(1, 2**53)
    for n in (1, 7, 1000):
        assert Fraction(gamma(n)) >= n * u / (1 - n * u)


def test_directed_sums_beyond_float64():
    largest = np.finfo(float).max
    assert (add_up(largest, largest), add_down(largest, largest)) == (np.inf, largest)
    assert (add_up(-largest, -largest), add_down(-largest, -largest)) == (-largest, -np.inf)
    assert (add_up(-np.inf, 1.0), add_down(np.inf, 1.0)) == (-np.inf, np.inf)


def test_norms_and_products_are_rounded_outwards_everywhere():
    rng = np.random.default_rng(0)
    for scale in (5e-324, 1e-310, 1e-200, 1e-160, 1.0, 1e160, 1e300):
        for _ in range(20):
            vector = scale * rng.integers(1, 9, 3)
            square = sum(Fraction(v) ** 2 for v in vector)
            assert Fraction(norm_down(vector)) ** 2 <= square <= Fraction(norm_up(vector)) ** 2
    several = [rng.random(int(rng.integers(1, 9))).tolist() for _ in range(50)]
    hard = ([1e-200, 1e-200], [1e-200, 1e300, 1e-200], [5e-324, 0.3], [0.1] * 7, [3.0])
    for factors in (*hard, *several):
        exact = Fraction(1)
        for factor in factors:
            exact *= Fraction(factor)
        assert Fraction(product_up(factors)) >= exact
    assert product_up([0.5, 3.0]) == pytest.approx(1.5, rel=1e-14)
    assert product_up([0.0, np.inf]) == 0.0 and product_up([1e200, 1e200]) == np.inf


def test_fractions_are_rounded_to_the_neighbour_outside():
    rng = np.random.default_rng(0)
    for _ in range(100):
        value = Fraction(int(rng.integers(-(10**9), 10**9)), int(rng.integers(1, 10**9)))
        value *= Fraction(10) ** int(rng.integers(-330, 300))
        up, down = fraction_up(value), fraction_down(value)
        assert Fraction(down) <= value <= Fraction(up)
        assert up <= np.nextafter(down, np.inf)
    assert fraction_up(Fraction(3, 8)) == fraction_down(Fraction(3, 8)) == 0.375
    huge, largest = Fraction(10) ** 400, np.finfo(float).max
    assert (fraction_up(huge), fraction_down(huge)) == (np.inf, largest)
    assert (fraction_up(-huge), fraction_down(-huge)) == (-largest, -np.inf)


def test_errors_of_sums_and_products_are_exact():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 200)) * 10.0 ** rng.integers(-20, 20, (2, 200))
    for operation, exact in ((two_sum, Fraction.__add__), (two_product, Fraction.__mul__)):
        for x, y, value, error in zip(a, b, *operation(a, b), strict=True):
            assert Fraction(value) + Fraction(error) == exact(Fraction(x), Fraction(y))
