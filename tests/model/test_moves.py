"""Operations that only move entries."""

import numpy as np
import pytest

from pindown.model.operations.moves import (
    Concat,
    Constant,
    Expand,
    Fill,
    Gather,
    Pad,
    Reshape,
    Slice,
    Tile,
    Transpose,
)
from tests.model.properties import check_operation


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (Reshape((1, 6)), (1, 2, 3)),
        (Transpose((0, 2, 1)), (1, 2, 3)),
        (Transpose((2, 0, 1)), (1, 2, 3)),
        (Slice((slice(None), slice(1, None, 2))), (1, 5)),
        (Slice((slice(None), slice(None, None, -1))), (1, 5)),
        (Slice((slice(None), slice(4, 1, -2))), (1, 5)),
        (Gather(np.array([2, 0, 2]), 1), (1, 3)),
        (Gather(np.array(1), 1), (1, 3, 2)),
        (Expand((1, 3, 2)), (1, 1, 2)),
        (Expand((3, 2)), (2,)),
        (Tile((1, 3)), (1, 2)),
        (Pad((0, 2), (0, 1), "reflect"), (1, 4)),
        (Pad((0, 1), (0, -1), "edge"), (1, 4)),
        (Fill((0, 1), (0, 2), 1.5), (1, 3)),
        (Fill((0, -1), (0, 2)), (1, 3)),
    ],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_one_tensor(operation, shape):
    check_operation(operation, shape, lowers=True, tolerance=0.0, exact=not isinstance(operation, Fill))


def test_joining():
    check_operation(Concat(1), (1, 2), (1, 3), lowers=True)
    check_operation(Concat(2), (1, 2, 1), (1, 2, 3), (1, 2, 2), lowers=True)
    with pytest.raises(ValueError, match="cannot be joined"):
        Concat(1).shape((1, 2, 3), (1, 2))


def test_a_constant_does_not_depend_on_the_input():
    check_operation(Constant([[1.0, -2.0]]), (1, 3), exact=False)
    assert not Constant([1.0]).values.flags.writeable


def test_pull_back_is_the_transpose():
    """<f, M x> = <M^T f, x> for the moves that repeat entries."""
    rng = np.random.default_rng(1)
    for operation, shape in [(Gather(np.array([2, 0, 2]), 1), (1, 3)), (Tile((1, 3)), (1, 2))]:
        x = rng.normal(size=(2, *shape))
        y = operation(x)
        form = rng.normal(size=y.shape)
        (back,) = operation.pull_back(form, x)
        assert np.allclose((form * y).sum(axis=(1, 2)), (back * x).sum(axis=(1, 2)))
