"""Sums rounded up are never below the exact sums."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from pindown.equivalence.sensitivity._propagation import product_above, row_norms_above, sum_above


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("size", [1.0, 1e-160, 1e-310, 1e150])
def test_products_and_lengths(size, as_matrix):
    rng = np.random.default_rng(0)
    W = size * rng.standard_normal((20, 15)) * (rng.random((20, 15)) < 0.5)
    v = size * rng.random(15)
    W[0] = 0.0
    products, lengths = product_above(as_matrix(W), v), row_norms_above(as_matrix(W))
    for row, product, length in zip(W, products, lengths, strict=True):
        exact = sum(abs(Fraction(a)) * Fraction(b) for a, b in zip(row, v, strict=True))
        assert exact <= Fraction(product)
        assert sum(Fraction(a) ** 2 for a in row) <= Fraction(length) ** 2
    assert lengths[0] == 0.0
    if size == 1.0:
        np.testing.assert_allclose(products, np.abs(W) @ v, rtol=1e-13)
        np.testing.assert_allclose(lengths, np.linalg.norm(W, axis=1), rtol=1e-13)


def test_infinite_and_zero_parts():
    assert product_above(np.zeros((1, 2)), np.array([1.0, np.inf])) == np.inf
    assert product_above(np.zeros((1, 2)), np.ones(2)) == 0.0
    assert sum_above(np.array([0.1]), 0.2) >= 0.3
