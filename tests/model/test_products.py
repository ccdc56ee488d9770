"""Products of tensors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pindown.model.builder import Builder
from pindown.model.operations.moves import Constant
from pindown.model.operations.operation import Interval, NotPiecewiseLinearError, as_fractions
from pindown.model.operations.products import MatrixProduct, Multiply, Square
from tests.model.properties import check_operation

MATRICES = [
    ((1, 3, 4), (1, 4, 2)),
    ((1, 2, 3, 4), (1, 2, 4, 3)),
    ((1, 2, 3, 4), (4, 3)),
    ((3, 4), (1, 2, 4, 5)),
    ((4,), (4,)),
    ((4,), (2, 4, 3)),
    ((1, 3, 4), (4,)),
    ((1, 1, 3, 4), (1, 2, 4, 3)),
]


@pytest.mark.parametrize("shapes", [((1, 4), (1, 4)), ((1, 3, 4), (4,)), ((2, 1), (1, 3)), ((), (1, 3))])
def test_multiply(shapes):
    check_operation(Multiply(), *shapes, lowers=False)
    check_operation(Multiply(), *shapes, low=0.5, high=2.0)
    check_operation(Multiply(), *shapes, low=-2.0, high=-0.5)


def test_square():
    check_operation(Square(), (1, 3, 2), lowers=False)
    check_operation(Square(), (1, 3, 2), low=0.5, high=2.0)


@pytest.mark.parametrize("shapes", MATRICES)
def test_matrix_product(shapes):
    check_operation(MatrixProduct(), *shapes, lowers=False)
    check_operation(MatrixProduct(), *shapes, low=0.2, high=2.0)


@pytest.mark.parametrize("shapes", MATRICES)
def test_matrix_product_is_numpy_s(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(2, *shape)) for shape in shapes)
    expected = np.stack([np.matmul(a, b) for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(MatrixProduct()(x, y), expected, rtol=1e-14)
    assert MatrixProduct().multiply_adds(*shapes) == expected[0].size * shapes[0][-1]


def test_shapes_that_do_not_fit():
    for shapes in [((1, 3), (4, 2)), ((), (3,)), ((2, 3, 4), (5, 4, 2))]:
        with pytest.raises(ValueError):
            MatrixProduct().shape(*shapes)
    with pytest.raises(ValueError):
        Multiply().shape((3,), (4,))


def _boxes(rng, *shapes):
    ends = [np.sort(rng.normal(size=(2, 6, *shape)), axis=0) for shape in shapes]
    return [Interval(low, high) for low, high in ends]


@pytest.mark.parametrize(
    ("operation", "shapes"),
    [(Multiply(), ((5,), (5,))), (MatrixProduct(), ((3, 4), (4, 2))), (Square(), ((5,),))],
)
def test_interval_holds_in_rationals(operation, shapes):
    """Bounds hold for real numbers, and are no farther away than rounding."""
    rng = np.random.default_rng(1)
    boxes = _boxes(rng, *shapes)
    bounds = operation.interval(*boxes)
    for _ in range(20):
        points = [np.where(rng.random(b.lower.shape) < 0.5, *b) for b in boxes]
        exact = operation(*(as_fractions(x) for x in points))
        assert (as_fractions(bounds.lower) <= exact).all()
        assert (exact <= as_fractions(bounds.upper)).all()


def test_interval_of_matrix_product_is_that_of_its_terms():
    rng = np.random.default_rng(2)
    x, y = _boxes(rng, (3, 4), (4, 2))
    bounds = MatrixProduct().interval(x, y)
    wide = [Interval(*(end[..., None] for end in x)), Interval(*(end[:, None] for end in y))]
    terms = Multiply().interval(*wide)
    np.testing.assert_allclose(bounds.lower, terms.lower.sum(axis=2), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bounds.upper, terms.upper.sum(axis=2), rtol=1e-12, atol=1e-12)


def test_plane_is_as_good_as_the_interval():
    """The chosen planes' extremes on the box are those of the product."""
    rng = np.random.default_rng(3)
    x, y = _boxes(rng, (40,), (40,))
    lines = Multiply().relaxation(x, y)
    bounds = Multiply().interval(x, y)
    low, high = lines.below.copy(), lines.above.copy()
    for a, s, box in zip(lines.lower, lines.upper_slopes, (x, y), strict=True):
        low += np.minimum(a * box.lower, a * box.upper)
        high += np.maximum(s * box.lower, s * box.upper)
    np.testing.assert_allclose(low, bounds.lower, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(high, bounds.upper, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shapes", [((2, 3), (3, 2)), ((1, 3), (2, 3, 2))])
def test_matrix_planes_are_those_of_its_terms(shapes):
    """Pulling a form back through the matrix product is pulling it back through every product."""
    rng = np.random.default_rng(4)
    x, y = _boxes(rng, *shapes)
    out = MatrixProduct().shape(*shapes)
    form = rng.normal(size=(6, 3, *out))
    pulled = MatrixProduct().relaxation(x, y).upper(form)
    wide = [
        Interval(*(end[..., None] for end in x)),  # (..., i, k, 1)
        Interval(*(end[..., None, :, :] for end in y)),  # (..., 1, k, j)
    ]
    every = np.broadcast_to(form[..., None, :], (6, 3, *out[:-1], shapes[0][-1], out[-1]))
    expected = Multiply().relaxation(*wide).upper(every.copy())
    for given, wanted in zip(pulled.forms, expected.forms, strict=True):
        np.testing.assert_allclose(given, wanted.reshape(given.shape), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(pulled.offset, expected.offset, rtol=1e-10, atol=1e-10)


def _corners(rng, boxes):
    return [as_fractions(np.where(rng.random(b.lower.shape) < 0.5, *b)) for b in boxes]


@pytest.mark.parametrize("width", [1.0, 1e-3, 0.0])
def test_planes_hold_in_rationals(width):
    """At corners, where planes touch, no rounding is left unpaid: of the planes themselves."""
    rng = np.random.default_rng(5)
    boxes = [Interval(b.lower, b.lower + width * (b.upper - b.lower)) for b in _boxes(rng, (50,), (50,))]
    for operation, given in ((Multiply(), boxes), (Square(), boxes[:1])):
        lines = operation.relaxation(*given)
        for _ in range(5):
            points = _corners(rng, given)
            y = operation(*points)
            below, above = as_fractions(lines.below), as_fractions(lines.above)
            for a, s, x in zip(lines.lower, lines.upper_slopes, points, strict=True):
                below, above = below + as_fractions(a) * x, above + as_fractions(s) * x
            assert (below <= y).all() and (y <= above).all()


@pytest.mark.parametrize("width", [1.0, 0.0])
@pytest.mark.parametrize(
    ("operation", "shapes"), [(Multiply(), ((3,), (3,))), (MatrixProduct(), ((2, 3), (3, 1)))]
)
def test_relaxation_holds_in_rationals(operation, shapes, width):
    """And of forms pulled back through them; on a box of one point all that is left is rounding."""
    rng = np.random.default_rng(5)
    boxes = [Interval(b.lower, b.lower + width * (b.upper - b.lower)) for b in _boxes(rng, *shapes)]
    form = rng.normal(size=(6, 4, *operation.shape(*shapes)))
    pulled = operation.relaxation(*boxes).upper(form)
    for _ in range(5):
        points = _corners(rng, boxes)
        y = operation(*points)
        for i in range(6):
            for r in range(4):
                left = sum((as_fractions(form[i, r]) * y[i]).ravel(), Fraction(0))
                right = Fraction(pulled.offset[i, r])
                for f, x in zip(pulled.forms, points, strict=True):
                    right += sum((as_fractions(f[i, r]) * x[i]).ravel(), Fraction(0))
                assert left <= right


@pytest.mark.parametrize(
    ("operation", "shapes"), [(Multiply(), ((2,), (2,))), (MatrixProduct(), ((1, 2), (2, 1)))]
)
def test_unbounded_and_huge_boxes(operation, shapes):
    for size in (np.inf, 1e300):
        x = Interval(*(sign * np.full((1, *shapes[0]), size) for sign in (-1, 1)))
        y = Interval(*(np.full((1, *shapes[1]), end) for end in (0.0, 1e10)))
        bounds = operation.interval(x, y)
        assert not np.isnan(bounds.lower).any() and (bounds.upper >= 1e300).all()
        pulled = operation.relaxation(x, y).upper(np.ones((1, 1, *operation.shape(*shapes))))
        assert not any(np.isnan(f).any() for f in pulled.forms) and not np.isnan(pulled.offset).any()


def test_zero_times_anything_is_zero():
    wild = Interval(np.full((1, 2), -np.inf), np.full((1, 2), np.inf))
    zero = Interval(np.zeros((1, 2)), np.zeros((1, 2)))
    bounds = Multiply().interval(wild, zero)
    assert (bounds.lower == 0).all() and (bounds.upper == 0).all()


def test_a_constant_factor_has_a_relu_form():
    for operation, values in [
        (Multiply(), np.array([2.0, -1.0, 0.5])),
        (MatrixProduct(), np.ones((3, 2))),
    ]:
        graph = Builder((1, 3))
        model = graph.model(graph.add(operation, graph.input, graph.add(Constant(values), graph.input)))
        x = np.random.default_rng(0).normal(size=(4, 3))
        np.testing.assert_allclose(model.relu_network()(x), model(x), rtol=1e-12)


def test_message_says_what_is_multiplied():
    graph = Builder((1, 3))
    model = graph.model(graph.add(Multiply(), graph.input, graph.input))
    with pytest.raises(
        NotPiecewiseLinearError, match="Mul of two tensors that both depend on the input"
    ):
        model.relu_network()
