"""Layers of zeros as sparse matrices: the same function, the same graph."""

import numpy as np

from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.sparse import SparseDense
from pindown.model.sparse_layers import with_sparse_layers
from pindown.network import ReluNetwork

rng = np.random.default_rng(0)


def test_only_layers_of_zeros_are_changed_and_the_function_is_not():
    thin = np.where(rng.uniform(size=(300, 300)) < 0.01, rng.normal(size=(300, 300)), 0.0)
    full = rng.normal(size=(5, 300))
    model = model_of_network(ReluNetwork.from_layers([(thin, rng.normal(size=300)), (full, np.ones(5))]))
    light = with_sparse_layers(model)
    assert [type(op) for op in light.operations if op.name == "Dense"] == [SparseDense, Dense]
    X = rng.normal(size=(7, 300))
    np.testing.assert_allclose(light(X), model(X), rtol=1e-12, atol=1e-12)
    assert light.n_parameters <= model.n_parameters and light.output_shape == model.output_shape


def test_a_model_without_them_stays_itself():
    model = model_of_network(ReluNetwork.from_layers([(rng.normal(size=(3, 2)), np.zeros(3))]))
    assert with_sparse_layers(model) is model
