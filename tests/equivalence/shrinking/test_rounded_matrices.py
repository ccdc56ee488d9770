"""Rounding errors are bounded, and zero exactly when nothing was rounded."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from pindown.affine import dense
from pindown.equivalence.shrinking._rounded_matrices import (
    add,
    affine_image,
    matmul,
    multiply,
    same_products,
    sum_up,
)

NUMBERS = np.array([0.0, 1.0, -1.0, 0.1, 3.0, -1e300, 1e300, 1e-300, 5e-324, 2.0**-600, 1.0 + 2.0**-52])


def exact(x):
    return Fraction(float(x))


def check_bounded(true, value, error):
    """The bound holds, and it is 0 only for exact results."""
    if np.isfinite(value) and np.isfinite(error):
        assert abs(true - exact(value)) <= exact(error)


def test_single_operations_on_hard_numbers():
    for a in NUMBERS:
        for b in NUMBERS:
            x, y = np.array([a]), np.array([b])
            with np.errstate(all="ignore"):
                product, total = multiply(x, y), add(x, y)
            check_bounded(exact(a) * exact(b), product.value[0], product.error[0])
            check_bounded(exact(a) + exact(b), total.value[0], total.error[0])


def test_sums_are_rounded_up():
    a, b = np.random.default_rng(3).random((2, 200)) * 10.0 ** np.linspace(-20, 20, 200)
    for p, q, total in zip(a, b, sum_up(a, b), strict=True):
        assert exact(p) + exact(q) <= exact(total) <= (exact(p) + exact(q)) * Fraction(1 + 1e-15)
    assert sum_up(np.array([0.1, 0.0]), np.array([0.0, 0.3])).tolist() == [0.1, 0.3]


def test_same_products_is_exact():
    rng = np.random.default_rng(0)
    a, b, c, d = rng.choice(np.append(NUMBERS, [0.5, 2.0, 0.3, 6.0, 0.2]), size=(4, 5000))
    true = [exact(p) * exact(q) == exact(r) * exact(s) for p, q, r, s in zip(a, b, c, d, strict=True)]
    np.testing.assert_array_equal(same_products(a, b, c, d), true)


@pytest.mark.parametrize("kinds", ["dd", "ds", "sd", "ss"])
@pytest.mark.parametrize("integers", [True, False])
def test_matrix_products(kinds, integers):
    rng = np.random.default_rng(1)
    A = rng.integers(-3, 4, (5, 7)).astype(float) if integers else rng.standard_normal((5, 7))
    B = rng.integers(-3, 4, (7, 4)).astype(float) if integers else rng.standard_normal((7, 4))
    A[rng.random(A.shape) < 0.4] = 0.0
    stored = [sp.csr_array(M) if kind == "s" else M for M, kind in zip((A, B), kinds, strict=True)]
    value, error = (dense(part) for part in matmul(*stored))
    for i, k in np.ndindex(5, 4):
        true = sum(exact(A[i, j]) * exact(B[j, k]) for j in range(7))
        assert abs(true - exact(value[i, k])) <= exact(error[i, k])
    assert (np.all(error == 0.0)) == integers
    assert np.all(error < 1e-14)


def test_large_products_are_bounded_too():
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((300, 300)), rng.standard_normal((300, 300))
    value, error = matmul(A, B)
    for i, k in [(0, 0), (17, 250), (299, 299)]:
        true = sum(exact(A[i, j]) * exact(B[j, k]) for j in range(300))
        assert abs(true - exact(value[i, k])) <= exact(error[i, k]) < 1e-10


def test_products_too_large_to_be_followed_are_bounded_where_sums_lose_most():
    """Beside 1, terms of 2^-54 are lost one by one, and together they are many."""
    row = np.full(4000, 2.0**-54)
    row[0] = 1.0
    value, error = matmul(np.tile(row, (64, 1)), np.ones((4000, 128)))
    true = 1 + 3999 * Fraction(1, 2**54)
    assert abs(true - exact(value[0, 0])) <= exact(error[0, 0]) < 1e-9


def test_errors_of_affine_images_count_the_last_sum():
    A, b, c = np.eye(2), np.array([1.0, 1.0]), np.array([1e-30, 2.0])
    value, error = affine_image(A, b, c)
    assert value.tolist() == [1.0, 3.0]
    assert error[0] >= 1e-30 and error[1] == 0.0


def test_affine_image():
    A, b, c = np.array([[0.1, 0.2], [1.0, 2.0]]), np.array([3.0, 7.0]), np.array([0.5, -1.0])
    value, error = affine_image(A, b, c)
    for i in range(2):
        true = sum(exact(A[i, j]) * exact(b[j]) for j in range(2)) + exact(c[i])
        assert abs(true - exact(value[i])) <= exact(error[i])
    assert error[1] == 0.0 and error[0] > 0.0
