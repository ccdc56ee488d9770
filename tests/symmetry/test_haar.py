"""Averages over groups are invariant with the right measure, and not with the wrong one."""

import numpy as np
import pytest

from pindown.symmetry import dihedral
from pindown.symmetry.haar import affine_integral, circle_average, group_average, space_average


def test_finite_averages_do_not_notice_the_group():
    group, rng = dihedral(5).permuting(), np.random.default_rng(0)
    x, w = rng.standard_normal(5), rng.standard_normal(5)

    def f(v):
        return np.array([np.tanh(v @ w), v[0] * v[1]])

    first = group_average(f, group, x)
    assert first.kind == "exact" and first.n == 10
    for i in range(10):
        assert np.allclose(group_average(f, group, group.act(i, x)).value, first.value, atol=1e-12)
    assert np.allclose(first.value, np.mean([f(v) for v in group.orbit(x)], axis=0))


def test_random_elements_estimate_within_their_standard_error():
    group, x = dihedral(5).permuting(), np.arange(5.0)
    exact = group_average(lambda v: v[0] * v[1], group, x).value
    found = group_average(lambda v: v[0] * v[1], group, x, n=4000, seed=1)
    assert found.kind == "estimate" and abs(found.value - exact) < 5 * found.standard_error
    few = group_average(lambda v: v[0] * v[1], group, x, n=1000, seed=1)
    assert few.standard_error / found.standard_error == pytest.approx(2.0, rel=0.1)


def test_the_trapezoid_rule_on_the_circle_is_exact_below_its_degree():
    # The mean of cos^(2m) is (2m choose m) / 4^m.
    from math import comb

    for m in range(1, 8):
        mean = circle_average(lambda p, m=m: p[0] ** (2 * m), [1.0, 0.0], n=16).value
        assert abs(mean - comb(2 * m, m) / 4**m) < 1e-14
    assert abs(circle_average(lambda p: p[0] ** 16, [1.0, 0.0], n=16).value - comb(16, 8) / 4**8) > 1e-6


def test_the_circle_average_converges_faster_than_any_power():
    def f(p):
        return np.exp(p[0])

    exact = float(np.i0(1.0))
    errors = [abs(circle_average(f, [1.0, 0.0], n).value - exact) for n in (4, 8, 16)]
    assert errors[1] < 1e-3 * errors[0] and errors[2] < 1e-14


def test_random_rotations_of_space_give_the_moments_of_the_sphere():
    found = space_average(lambda p: np.array([p[0] ** 2, p[0] ** 4, p[0]]), [0.0, 0.6, 0.8], 20_000)
    assert (np.abs(found.value - [1 / 3, 1 / 5, 0]) < 5 * found.standard_error).all()
    fewer = space_average(lambda p: p[0], [0.0, 0.6, 0.8], 5_000)
    assert fewer.standard_error / found.standard_error[2] == pytest.approx(2.0, rel=0.05)


def bump(a, b):
    return np.exp(-4 * np.log(a) ** 2 - (b - 0.3) ** 2)


@pytest.mark.parametrize("element", [(2.0, 0.0), (0.5, 1.0), (1.7, -2.0)])
def test_printed_measure_is_right_invariant_and_the_left_one_gives_no_invariant(element):
    """The source calls d(g g') = dg invariant; that is the right side, and the other side fails."""
    right = affine_integral(bump, element) / affine_integral(bump)
    left = affine_integral(bump, element, measure="left") / affine_integral(bump, measure="left")
    assert abs(right - 1.0) < 1e-9
    assert abs(left - element[0]) < 1e-9  # off by the scale of the element


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="two coordinates"):
        circle_average(np.sum, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="three coordinates"):
        space_average(np.sum, [1.0, 2.0])
    with pytest.raises(ValueError, match="at least 2: a standard error"):
        space_average(np.sum, [1.0, 2.0, 3.0], n=1)
    with pytest.raises(ValueError, match="n must be an integer"):
        group_average(np.sum, dihedral(3), np.zeros(6), n=0)
    with pytest.raises(ValueError, match="positive scale"):
        affine_integral(bump, (-1.0, 0.0))
    with pytest.raises(ValueError, match="finite values"):
        group_average(lambda v: np.nan, dihedral(3), np.zeros(6))
