"""Facts about a model with convolutions are those a framework counts, not those of its matrices."""

import numpy as np
import pytest

from pindown import audit
from pindown.model.operations.dense import Dense
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.pooling import MaxPool
from tests.equivalence.shrinking.graphs import Chain, conv, single, window


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    chain = Chain((1, 8, 8)).add(
        conv(single(rng, 4, 1, 3, 3), single(rng, 4)), Relu(), MaxPool(window(2, 2))
    )
    return chain.flat().add(Dense(single(rng, 3, 36), single(rng, 3))).model()


def test_parameters_and_costs_are_those_of_the_operations(pictures):
    found = audit(pictures, only=["ARC-01"])["ARC-01"]
    assert found.number.value == 4 * 9 + 4 + 3 * 36 + 3
    assert found.verdict == "1 Conv2d, 1 ReLU, 1 Dense: 151 parameters, 144 units"
    rows = [
        ("Conv2d", "4 × 6 × 6", 0, 40, 36 * 36),
        ("ReLU", "4 × 6 × 6", 144, 0, 0),
        ("Dense", "3", 0, 111, 108),
    ]
    assert list(found.table.rows) == rows
    assert f"One input costs {36 * 36 + 108:,} multiply-adds" in found.reading
    assert "through 144 units in 1 layer and has 151 parameters" in found.sentence


def test_a_network_is_counted_as_before(pictures):
    net = pictures.relu_network()
    assert audit(net, only=["ARC-01"])["ARC-01"].number.value == net.n_parameters


def test_norms_of_convolutions_come_from_the_kernel(pictures):
    found = audit(pictures, only=["NORM-01"])["NORM-01"]
    (first, last) = found.table.rows
    assert first[1:3] == ("Conv2d", "4 × 1 × 3 × 3") and first[4] == "symbol" and last[4] == "cholesky"
    matrix = pictures.nodes[0].operation.linear(np.eye(64).reshape(64, 1, 1, 8, 8)).reshape(64, -1)
    assert np.linalg.norm(matrix, 2) <= first[3] <= 1.2 * np.linalg.norm(matrix, 2)
    assert found.number.value == max(first[3], last[3]) and found.number.bound == "upper"
