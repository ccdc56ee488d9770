"""The inverse relative entropy is never below the truth, as mpmath computes it with sixty digits."""

import mpmath
import numpy as np
import pytest

from pindown.guarantees.bounds import small_kl, small_kl_inverse

mpmath.mp.dps = 60


def exact_kl(q, p):
    q, p = mpmath.mpf(float(q)), mpmath.mpf(float(p))
    total = mpmath.mpf(0)
    if q > 0:
        total += q * mpmath.log(q / p)
    if q < 1:
        total += (1 - q) * mpmath.log((1 - q) / (1 - p))
    return total


def cases(n=400):
    rng = np.random.default_rng(0)
    q = np.concatenate([rng.random(n), 10 ** rng.uniform(-280, 0, n), 1 - 10 ** rng.uniform(-16, 0, n)])
    return q, 10 ** rng.uniform(-18, 2, len(q))


def test_never_below_the_true_value():
    q, c = cases()
    p = small_kl_inverse(q, c)
    assert all(
        x == 1.0 or exact_kl(a, x) >= mpmath.mpf(float(b)) for a, b, x in zip(q, c, p, strict=True)
    )


def test_above_it_by_rounding_only():
    q, c = cases()
    p = small_kl_inverse(q, c)
    for a, b, x in zip(q, c, p, strict=True):
        below = mpmath.mpf(x) - (mpmath.mpf(x) - mpmath.mpf(a)) * 1e-11 - mpmath.mpf(x) * 2.0**-52
        assert below <= a or exact_kl(a, below) <= mpmath.mpf(float(b))


@pytest.mark.parametrize(
    ("q", "c", "p"),
    [(0, 0, 0), (1, 0, 1), (1, 5, 1), (0.3, 0, 0.3), (0, np.inf, 1), (0.3, np.inf, 1), (0, 1e3, 1)],
)
def test_edges(q, c, p):
    assert small_kl_inverse(q, c) == p


def test_zero_errors_in_closed_form():
    c = np.geomspace(1e-15, 30, 50)
    np.testing.assert_allclose(small_kl_inverse(0.0, c), -np.expm1(-c), rtol=1e-12)
    assert (small_kl_inverse(0.0, c) >= -np.expm1(-c)).all()


def test_tiny_shares_and_subnormal_ones():
    assert small_kl_inverse(5e-324, 1e-3) >= small_kl_inverse(0.0, 1e-3)
    assert small_kl_inverse(5e-324, 0.0) >= 5e-324


def test_increases_in_both_arguments():
    q, c = np.linspace(0, 1, 40), np.geomspace(1e-6, 10, 40)
    table = small_kl_inverse(q[:, None], c[None, :])
    assert table.shape == (40, 40)
    assert (np.diff(table, axis=0) >= 0).all()
    assert (np.diff(table, axis=1) >= 0).all()


def test_entropy_agrees_with_sixty_digits():
    rng = np.random.default_rng(1)
    q = rng.random(300)
    p = np.where(
        rng.random(300) < 0.5, rng.random(300), np.clip(q + 1e-7 * rng.standard_normal(300), 0, 1)
    )
    for a, b in zip(q, p, strict=True):
        assert float(small_kl(a, b)) == pytest.approx(float(exact_kl(a, b)), rel=1e-12)
    np.testing.assert_array_equal(
        small_kl([0, 1, 0.5, 0.5, 0.3], [0, 1, 0, 1, 0.3]), [0, 0, np.inf, np.inf, 0]
    )


def test_empty_and_scalar():
    assert small_kl_inverse(np.zeros((2, 0)), 1.0).shape == (2, 0)
    assert np.ndim(small_kl_inverse(0.1, 0.1)) == 0


@pytest.mark.parametrize(("q", "c"), [(-0.1, 1), (1.1, 1), (np.nan, 1), (0.5, -1), (0.5, np.nan)])
def test_refuses(q, c):
    with pytest.raises(ValueError, match="got"):
        small_kl_inverse(q, c)
