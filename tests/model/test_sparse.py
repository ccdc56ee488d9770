"""Dense layers most of whose weights are zero."""

import numpy as np
import pytest
import scipy.sparse as sp

from pindown.model.operations.dense import Dense
from pindown.model.operations.sparse import SparseDense
from tests.model.properties import check_operation

rng = np.random.default_rng(0)
W = rng.normal(size=(5, 4)) * (rng.uniform(size=(5, 4)) < 0.4)
b = rng.normal(size=5)


@pytest.mark.parametrize("bias", [b, None], ids=["bias", "none"])
@pytest.mark.parametrize("shape", [(1, 4), (1, 3, 4)])
def test_it_keeps_what_operations_keep(shape, bias):
    check_operation(SparseDense.of(sp.csr_array(W), bias), shape, lowers=True)


def test_it_is_the_dense_layer_of_the_same_matrix():
    sparse, dense = SparseDense.of(sp.csr_array(W), b), Dense(W, b)
    x = rng.normal(size=(7, 1, 4))
    assert np.allclose(sparse(x), dense(x), rtol=0, atol=1e-14)
    assert sparse.n_parameters == np.count_nonzero(W) + 5 < dense.n_parameters
    assert sparse.multiply_adds((1, 4)) == np.count_nonzero(W)
    with pytest.raises(ValueError, match="does not fit"):
        sparse.shape((1, 3))
