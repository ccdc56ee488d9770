"""What rows of an affine map say about their entries: no point is lost, and what follows is found."""

import numpy as np
import pytest

from pindown.model.operations.dense import Add, Dense
from pindown.model.operations.moves import Gather, Reshape
from pindown.model.operations.narrowing import LinearRows
from pindown.model.operations.operation import Interval, as_fractions
from pindown.model.operations.relu import Relu
from pindown.model.operations.sparse import SparseDense
from pindown.rounding import fraction_down, fraction_up


def box_of(*ends):
    """Return one box from pairs of ends."""
    low, high = np.array(ends, dtype=float).T
    return Interval(low[None], high[None])


def mixed(rng, shape, spread):
    """Return numbers of many sizes."""
    return rng.normal(size=shape) * 10.0 ** rng.uniform(-spread, spread, shape)


@pytest.mark.parametrize("spread", [0, 3, 12])
def test_no_point_is_lost_in_rationals(spread):
    """Every point of the box whose rows have the given values exactly is still there."""
    rng = np.random.default_rng(spread)
    narrower = 0
    for _ in range(150):
        m, d = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        W = mixed(rng, (m, d), spread) * (rng.random((m, d)) < 0.8)
        b = mixed(rng, m, spread)
        low, high = np.sort(mixed(rng, (2, d), spread), axis=0)
        share = rng.choice([0.0, 1.0, 0.5, rng.random()], d)
        x = np.clip(low + share * (high - low), low, high)
        y = as_fractions(W) @ as_fractions(x) + as_fractions(b)
        value = Interval(
            np.array([[fraction_down(v) if rng.random() < 0.7 else -np.inf for v in y]]),
            np.array([[fraction_up(v) if rng.random() < 0.7 else np.inf for v in y]]),
        )
        for layer in (Dense(W, b), SparseDense.of(W, b)):
            (box,) = layer.narrowed(value, Interval(low[None], high[None]))
            assert (box.lower[0] <= x).all() and (x <= box.upper[0]).all()
        narrower += bool((box.lower > low).any() or (box.upper < high).any())
    assert narrower > 60


def test_rows_are_solved_for_every_entry():
    """x + 2 y - z <= 1 with x, y >= 1/2 and z <= 1: x <= 1, y <= 3/4, z >= 1/2; the rest stays."""
    layer = Dense(np.array([[1.0, 2.0, -1.0, 0.0]]), np.array([0.0]))
    box = box_of((0.5, 9), (0.5, 9), (-9, 1), (0, 1))
    (found,) = layer.narrowed(box_of((-np.inf, 1.0)), box)
    np.testing.assert_allclose(found.lower, [[0.5, 0.5, 0.5, 0.0]], atol=1e-12)
    np.testing.assert_allclose(found.upper, [[1.0, 0.75, 1.0, 1.0]], atol=1e-12)
    (other,) = layer.narrowed(box_of((26.0, np.inf)), box)  # of 36 at most: ten are free
    np.testing.assert_allclose(other.lower, [[0.5, 4.0, -9.0, 0.0]], atol=1e-9)
    np.testing.assert_array_equal(layer.narrowed(box_of((-np.inf, np.inf)), box)[0], box)


def test_rows_that_cannot_be_leave_nothing():
    layer = Dense(np.array([[1.0, 1.0]]))
    (found,) = layer.narrowed(box_of((5.0, 6.0)), box_of((0, 1), (0, 1)))
    assert (found.lower > found.upper).any()


def test_a_relu_passes_what_is_known_of_it():
    """Above zero it is its input; below nothing is said but that the input is not larger."""
    box = box_of((-2, 3), (-2, 3), (-2, 3))
    (found,) = Relu().narrowed(box_of((0, 1), (0.5, 3), (0, 0)), box)
    assert found.lower.tolist() == [[-2.0, 0.5, -2.0]] and found.upper.tolist() == [[1.0, 3.0, 0.0]]


def test_sums_and_moves_are_solved():
    """x - y in [1, 2] with x, y in [0, 1]: x is 1, y is 0; copies share what is known of each."""
    x, y = Add((1, -1)).narrowed(box_of((1, 2)), box_of((0, 1)), box_of((0, 1)))
    assert x.lower[0, 0] == x.upper[0, 0] == 1.0 and y.lower[0, 0] == y.upper[0, 0] == 0.0
    (twice,) = Gather(np.array([1, 1]), 0).narrowed(box_of((0, 2), (1, 3)), box_of((-9, 9), (-9, 9)))
    assert twice.lower.tolist() == [[-9.0, 1.0]] and twice.upper.tolist() == [[9.0, 2.0]]
    (flat,) = Reshape((2,)).narrowed(box_of((0, 2), (1, 3)), box_of((-9, 9), (-9, 9)))
    assert flat.lower.tolist() == [[0.0, 1.0]]


def test_rows_close_to_their_limits_press_more():
    """x + y <= 1 on the unit square has one step left, x + y + z <= 2 two: 1/2 and 1/4 each."""
    rows = LinearRows.of(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, -1.0]]))
    box = box_of((0, 1), (0, 1), (0, 1))
    own = box_of((0, 2), (0, 3), (-1, 0))
    up, down = rows.pressure(box, own, box_of((0, 1), (0, 2), (-1, -0.5)))
    np.testing.assert_allclose(up, [[0.75, 0.75, 0.25]])
    np.testing.assert_allclose(down, [[0.0, 0.0, 2.0**-0.5]])
    up, down = rows.pressure(box, own, own)
    assert not up.any() and not down.any()
