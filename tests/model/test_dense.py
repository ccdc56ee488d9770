"""Affine operations on whole tensors."""

import numpy as np
import pytest

from pindown.model.operations.dense import Add, BatchNorm, Dense, Reduce, Scale
from pindown.model.operations.operation import Interval
from tests.model.properties import check_operation

rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (Dense(rng.normal(size=(3, 4)), rng.normal(size=3)), (1, 4)),
        (Dense(rng.normal(size=(3, 4))), (1, 4)),
        (Dense(rng.normal(size=(3, 4)), rng.normal(size=3)), (1, 5, 4)),
        (Dense(rng.normal(size=(3, 4)), rng.normal(size=3), axis=-2), (1, 4, 2)),
        (Dense(rng.normal(size=(3, 4)), axis=-2), (4, 2)),
        (Scale(np.array(2.5)), (1, 4)),
        (Scale(None, rng.normal(size=(4,))), (1, 4)),
        (Scale(rng.normal(size=(1, 4)), rng.normal(size=(1, 1))), (1, 4)),
        (Scale(rng.normal(size=(3, 1)), np.array(-1.0)), (1, 1, 4)),
        (BatchNorm(*rng.uniform(0.5, 2.0, size=(4, 3))), (1, 3, 2, 2)),
        (BatchNorm(-rng.uniform(0.5, 2.0, 3), *rng.uniform(0.5, 2.0, size=(3, 3)), epsilon=0.1), (1, 3)),
        (Reduce((1,)), (1, 3, 4)),
        (Reduce((1, 2), mean=True), (1, 3, 4)),
    ],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_one_tensor(operation, shape):
    check_operation(operation, shape, lowers=True)


@pytest.mark.parametrize(
    ("signs", "shapes"),
    [
        ((1, 1), [(1, 3), (1, 3)]),
        ((1, -1), [(1, 2, 3), (3,)]),
        ((-1, 1, 1), [(1, 3), (1, 1), (1, 3)]),
        ((1, 1, 1), [(1, 3), (1, 3), (1, 3)]),
    ],
)
def test_sums(signs, shapes):
    check_operation(Add(signs), *shapes, lowers=True)


def test_counts_are_those_of_a_framework():
    import torch

    linear = torch.nn.Linear(4, 3)
    dense = Dense(linear.weight.detach().numpy(), linear.bias.detach().numpy())
    assert dense.n_parameters == sum(p.numel() for p in linear.parameters()) == 15
    assert dense.multiply_adds((1, 4)) == 12 and dense.multiply_adds((1, 5, 4)) == 60
    norm = torch.nn.BatchNorm2d(6)
    assert BatchNorm(*np.ones((4, 6))).n_parameters == sum(p.numel() for p in norm.parameters()) == 12


def test_exact_zeros_stay_exact():
    """A unit whose inputs are all off is proved to be off, not to be at most 1e-300."""
    box = Interval(np.zeros((1, 1, 4)), np.zeros((1, 1, 4)))
    found = Dense(rng.normal(size=(3, 4))).interval(box)
    assert (found.lower == 0).all() and (found.upper == 0).all()


def test_intervals_hold_where_products_underflow():
    tiny = np.full((1, 1, 2), 1e-200)
    found = Dense([[1e-200, 1e-200]]).interval(Interval(tiny, tiny))
    assert found.upper.item() > 0 >= found.lower.item()  # the true value, 2e-400, is no float64


def test_intervals_are_tight_and_outward():
    """0.1 + 0.2 is no float64; the bounds are on both sides of it and next to each other."""
    x = np.array([[[0.1, 0.2]]])
    found = Dense([[1.0, 1.0]]).interval(Interval(x, x))
    from fractions import Fraction

    true = Fraction(0.1) + Fraction(0.2)
    assert Fraction(found.lower.item()) <= true <= Fraction(found.upper.item())
    assert found.upper.item() - found.lower.item() < 1e-14


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="does not fit"):
        Dense(np.ones((3, 4))).shape((1, 5))
    with pytest.raises(ValueError, match="do not fit"):
        BatchNorm(*np.ones((4, 3))).shape((1, 2, 4))
    with pytest.raises(ValueError, match="not positive"):
        BatchNorm(np.ones(1), np.ones(1), np.ones(1), -np.ones(1))
