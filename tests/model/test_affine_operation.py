"""Bounds and forms of affine operations in rational arithmetic, where numbers of all sizes cancel."""

import numpy as np
import pytest

from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, Dense, Reduce, Scale
from pindown.model.operations.moves import Fill, Gather, Tile
from pindown.model.operations.pooling import AveragePool
from pindown.model.operations.windows import Window
from tests.model.properties import check_in_rationals, mixed

rng = np.random.default_rng(0)
THREE, ONE, NONE = (3,), (1,), (0,)
OPERATIONS = [
    (Dense(mixed(rng, (3, 6)), mixed(rng, 3)), [(1, 6)]),
    (Dense(mixed(rng, (3, 6)), mixed(rng, 3), axis=-2), [(1, 6, 2)]),
    (Scale(mixed(rng, (1, 6)), mixed(rng, (1, 6))), [(1, 6)]),
    (Scale(None, mixed(rng, (1, 6))), [(1, 6)]),
    (Add((1, -1)), [(1, 6), (1, 6)]),
    (Add((1, 1)), [(1, 2, 6), (6,)]),
    (Reduce((1,)), [(1, 6)]),
    (
        Convolution(mixed(rng, (2, 2, 3)), mixed(rng, 2), window=Window(THREE, ONE, ONE, NONE, ONE)),
        [(1, 2, 5)],
    ),
    (AveragePool(Window(THREE, ONE, ONE, NONE, ONE)), [(1, 2, 5)]),
    (Gather(np.array([1, 1, 1, 0, 2]), 1), [(1, 3)]),
    (Tile((1, 4)), [(1, 3)]),
    (Fill((0, 2), (0, 1), 1e7), [(1, 3)]),
]


@pytest.mark.parametrize(("operation", "shapes"), OPERATIONS, ids=lambda v: getattr(v, "name", ""))
def test_bounds_and_forms_hold_in_rationals(operation, shapes):
    check_in_rationals(operation, *shapes)
