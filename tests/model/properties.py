"""What every operation has to keep: value, bounds, relaxation, derivative, ReLU and ONNX form agree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pindown.model.builder import Builder
from pindown.model.operations.operation import Interval, NotPiecewiseLinearError, as_fractions, dot_up


def model_of(operation, *shapes):
    """Return a model that cuts one flat input into tensors of these shapes and applies the operation."""
    from pindown.model.operations.moves import Reshape, Slice

    sizes = [int(np.prod(shape)) for shape in shapes]
    graph = Builder((1, sum(sizes)))
    tensors, start = [], 0
    for shape, size in zip(shapes, sizes, strict=True):
        part = graph.add(Slice((slice(None), slice(start, start + size))), graph.input)
        tensors.append(graph.add(Reshape(tuple(shape)), part))
        start += size
    return graph.model(graph.add(operation, *tensors), input_shape=(sum(sizes),), dtype="float64")


def check_operation(
    operation,
    *shapes,
    low=-3.0,
    high=3.0,
    lowers=None,
    exact=None,
    smooth=True,
    written=True,
    tolerance=1e-9,
    n=4,
    seed=0,
):
    """Check an operation on random tensors of the given shapes, with entries in [low, high].

    Args:
        operation: The operation.
        shapes: Literal shapes of its inputs.
        low: Smallest entry.
        high: Largest entry.
        lowers: Whether it has a ReLU form; None: does not matter.
        exact: Whether it also evaluates on rational numbers; None: as ``lowers``.
        smooth: Whether finite differences show its derivative at random points.
        written: Whether it can be written as ONNX and run by onnxruntime.
        tolerance: For comparisons of float64 numbers, relative to the largest value.
        n: How many inputs.
        seed: Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(low, high, (n, *shape)) for shape in shapes]
    value = operation(*inputs)
    assert value.shape == (n, *operation.shape(*shapes))
    assert value.dtype == np.float64
    scale = max(1.0, float(np.abs(value).max()))
    # Every row as if it came alone.
    alone = np.concatenate([operation(*(x[i : i + 1] for x in inputs)) for i in range(n)])
    np.testing.assert_allclose(alone, value, rtol=0, atol=tolerance * scale)
    _check_bounds(operation, inputs, rng, low, high)
    if smooth:
        _check_derivative(operation, inputs, rng)
    model = model_of(operation, *shapes)
    rows = np.concatenate([x.reshape(n, -1) for x in inputs], axis=1)
    np.testing.assert_allclose(model(rows), value.reshape(n, -1), rtol=0, atol=tolerance * scale)
    if lowers is True:
        net = model.relu_network()
        np.testing.assert_allclose(net(rows), value.reshape(n, -1), rtol=0, atol=1e-9 * scale)
    elif lowers is False:
        try:
            model.relu_network()
        except NotPiecewiseLinearError as error:
            assert operation.name in str(error)
        else:
            raise AssertionError(f"{operation.name} has a ReLU form")
    if exact or (exact is None and lowers):
        short = [np.round(x[:1] * 64) / 64 for x in inputs]
        rational = operation(*(as_fractions(x) for x in short))
        assert all(isinstance(v, (Fraction, int)) for v in rational.ravel().tolist())
        close = np.array(rational, dtype=float)
        np.testing.assert_allclose(close, operation(*short), rtol=0, atol=1e-12 * scale)
    if written:
        from tests.model.runtime import run_written

        try:
            run, close = run_written(model, rows), tolerance
        except Exception as error:  # onnxruntime has no float64 kernel for some operations
            if "NOT_IMPLEMENTED" not in str(error):
                raise
            run, close = run_written(model, rows, "float32"), max(tolerance, 2e-5)
        np.testing.assert_allclose(run, value.reshape(n, -1), rtol=0, atol=close * scale)


def _check_bounds(operation, inputs, rng, low, high):
    """Bounds and relaxations hold at corners and inside of small and large boxes."""
    for radius in (0.0, 1e-6, 0.1, 2.0):
        boxes = [Interval(np.maximum(x - radius, low), np.minimum(x + radius, high)) for x in inputs]
        bounds = operation.interval(*boxes)
        relaxation = operation.relaxation(*boxes)
        form = rng.normal(size=(len(inputs[0]), 3, *bounds.lower.shape[1:]))
        form[:, 0] = 0.0
        form[:, 0].reshape(len(form), -1)[:, 0] = 1.0
        pulled = relaxation.upper(form)
        for where in ("lower", "upper", "corner", "inside", "inside"):
            points = [_point(box, where, rng) for box in boxes]
            y = operation(*points)
            assert (bounds.lower <= y + 1e-300).all(), (operation.name, radius, where)
            assert (y <= bounds.upper + 1e-300).all(), (operation.name, radius, where)
            left = np.einsum("nqk,nk->nq", form.reshape(*form.shape[:2], -1), y.reshape(len(y), -1))
            right = pulled.offset + sum(
                np.einsum("nqk,nk->nq", f.reshape(*f.shape[:2], -1), x.reshape(len(x), -1))
                for f, x in zip(pulled.forms, points, strict=True)
            )
            slack = 1e-12 * (1.0 + np.abs(left) + np.abs(right))  # of this comparison, not of the bound
            assert (left <= right + slack).all(), (operation.name, radius, where, (left - right).max())
            # No input is lost that has such a value, but for the rounding of the value itself.
            wide = 1e-12 * (1.0 + np.abs(y))
            at = Interval(np.maximum(bounds.lower, y - wide), np.minimum(bounds.upper, y + wide))
            for x, box in zip(points, operation.narrowed(at, *boxes), strict=True):
                assert (box.lower <= x).all() and (x <= box.upper).all(), (operation.name, radius, where)


def _point(box, where, rng):
    if where == "lower":
        return box.lower.copy()
    if where == "upper":
        return box.upper.copy()
    share = rng.uniform(size=box.lower.shape)
    if where == "corner":
        return np.where(share < 0.5, box.lower, box.upper)
    return np.clip(box.lower + share * (box.upper - box.lower), box.lower, box.upper)


def _check_derivative(operation, inputs, rng):
    """The pull-back is the derivative: compared with central differences along a random direction."""
    value = operation(*inputs)
    form = rng.normal(size=value.shape)
    forms = operation.pull_back(form, *inputs)
    step = 1e-6
    for i, x in enumerate(inputs):
        direction = rng.normal(size=x.shape)
        ahead, behind = (
            operation(*[*inputs[:i], x + sign * step * direction, *inputs[i + 1 :]]) for sign in (1, -1)
        )
        axes = tuple(range(1, value.ndim))
        numeric = (form * (ahead - behind)).sum(axis=axes) / (2 * step)
        given = (forms[i] * direction).sum(axis=tuple(range(1, x.ndim)))
        assert forms[i].shape == x.shape
        np.testing.assert_allclose(
            given, numeric, rtol=1e-4, atol=1e-5 * max(1.0, np.abs(numeric).max())
        )


def mixed(rng, shape, spread=12):
    """Return numbers of many sizes, so that sums round."""
    return rng.normal(size=shape) * 10.0 ** rng.integers(-spread, spread, shape)


def check_in_rationals(operation, *shapes, n=40, seed=0):
    """Check bounds and pulled forms at corners of boxes of mixed sizes, in rational arithmetic."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        lower = [mixed(rng, (1, *shape)) for shape in shapes]
        boxes = [
            Interval(low, low + np.abs(mixed(rng, low.shape)) * (rng.uniform() < 0.5)) for low in lower
        ]
        bounds = operation.interval(*boxes)
        form = mixed(rng, (1, 2, *bounds.lower.shape[1:]))
        pulled = operation.relaxation(*boxes).upper(form)
        largest = dot_up(form, bounds)
        for _ in range(4):
            corner = [np.where(rng.uniform(size=b.lower.shape) < 0.5, *b) for b in boxes]
            y = operation(*(as_fractions(x) for x in corner))
            y = np.vectorize(Fraction, otypes=[object])(y)
            ends = zip(bounds.lower.ravel(), y.ravel(), bounds.upper.ravel(), strict=True)
            assert all(Fraction(float(a)) <= v <= Fraction(float(b)) for a, v, b in ends)
            for q in range(2):
                left = _exactly(form[0, q], y)
                right = Fraction(float(pulled.offset[0, q])) + sum(
                    _exactly(f[0, q], as_fractions(x)) for f, x in zip(pulled.forms, corner, strict=True)
                )
                assert left <= right
                assert left <= Fraction(float(largest[0, q]))


def _exactly(form, values):
    pairs = zip(form.ravel(), values.ravel(), strict=True)
    return sum((Fraction(float(a)) * v for a, v in pairs), Fraction(0))
