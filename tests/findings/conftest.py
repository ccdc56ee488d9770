"""Small networks whose facts are known."""

import numpy as np
import pytest

from pindown import ReluNetwork


@pytest.fixture
def absolute_value():
    return ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])


@pytest.fixture
def handmade():
    """Units on x in [0, 1]: dead, constant, always on, switching, duplicate of it, opposite of it.

    The dead unit -x - 1 is also the opposite of the one that is always on, x + 1.
    """
    W = [[-1.0], [0.0], [1.0], [1.0], [1.0], [-1.0]]
    b = [-1.0, 2.0, 1.0, -0.5, -0.5, 0.5]
    return ReluNetwork.from_layers([(W, b), ([[1, 1, 1, 1, 1, 1.0], [0, 1, 0, 1, 0, 1.0]], [0, 0])])


@pytest.fixture
def unit_interval():
    return np.linspace(0, 1, 21)[:, None]
