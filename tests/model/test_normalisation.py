"""Softmax, and tensors divided by their own size."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from pindown.model.operations.normalisation import (
    GroupNorm,
    LayerNorm,
    LogSoftmax,
    LpNormalize,
    RmsNorm,
    Softmax,
)
from pindown.model.operations.operation import Interval
from pindown.model.operations.rescale import Centre, Rescale, _least_spread
from pindown.model.operations.softmax import MARGIN
from tests.model.properties import check_operation

rng = np.random.default_rng(0)
SCALE, SHIFT = rng.normal(size=(2, 6))
NORMS = [
    (LayerNorm((2,), SCALE[:4], SHIFT[:4]), (1, 3, 4)),
    (LayerNorm((1, 2), rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), 1e-3), (1, 3, 4)),
    (LayerNorm((1,)), (1, 3, 4)),
    (LayerNorm((1,), SCALE[:3, None], SHIFT[:3, None]), (1, 3, 4)),
    (LayerNorm((1,), epsilon=0.5), (1, 2)),
    (LayerNorm((1,)), (1, 2, 3, 4)),
    (RmsNorm((2,), SCALE[:4]), (1, 3, 4)),
    (RmsNorm((1, 2), None, 0.1), (1, 3, 4)),
    (GroupNorm(2, SCALE, SHIFT), (1, 6, 2, 2)),
    (GroupNorm(6, SCALE, SHIFT), (1, 6, 3)),
    (GroupNorm(1), (1, 6)),
    (LpNormalize(1), (1, 4, 2)),
    (LpNormalize(-1, p=1), (1, 2, 3)),
]


AXES = [(1, (1, 5)), (-1, (1, 3, 4)), (1, (1, 3, 4)), (0, (3,)), (1, (2, 1))]


@pytest.mark.parametrize("kind", [Softmax, LogSoftmax])
@pytest.mark.parametrize(("axis", "shape"), AXES)
def test_softmax(kind, axis, shape):
    last = shape[axis] == np.prod(shape)  # then the network keeps it as its output activation
    check_operation(kind(axis), shape, lowers=None if last else False)
    check_operation(kind(axis), shape, low=-40.0, high=40.0, written=False, smooth=False)
    check_operation(kind(axis), shape, low=-900.0, high=900.0, written=False, smooth=False)
    words = {Softmax: "softmax", LogSoftmax: "log_softmax"}
    assert kind(axis).as_output_activation(shape) == (words[kind] if last else None)


def test_numpy_is_as_exact_as_assumed():
    """The margin taken is 64 times what NumPy's functions are off, compared with 60 digits."""
    numbers = np.random.default_rng(0).uniform(-700, 700, 300)
    small = numbers / 100
    worst = 0.0
    with mpmath.workdps(60):
        for x, s in zip(numbers, small, strict=True):
            X = mpmath.mpf(float(x))
            pairs = [
                (np.exp(x), mpmath.exp(X)),
                (np.log1p(np.exp(s)), mpmath.log1p(mpmath.mpf(float(np.exp(s))))),
                (np.log(abs(x)), mpmath.log(abs(X))),
                (np.logaddexp(0.0, x), mpmath.log1p(mpmath.exp(X))),
            ]
            worst = max([worst, *(float(abs(mpmath.mpf(float(a)) - b) / abs(b)) for a, b in pairs)])
    assert worst < MARGIN / 64


@pytest.mark.parametrize("kind", [Softmax, LogSoftmax])
@pytest.mark.parametrize("size", [1.0, 30.0, 1e4])
def test_softmax_bounds_are_those_of_corners(kind, size):
    """Compared with 50 digits: they hold, and are farther out by 1e-11 of the exponents at most."""
    generator = np.random.default_rng(0)
    low, high = np.sort(generator.normal(size=(2, 3, 6)) * size, axis=0)
    bounds = kind(-1).interval(Interval(low, high))
    with mpmath.workdps(50):
        for n in range(3):
            for i in range(6):
                for own, others, given, sign in (
                    (low, high, bounds.lower, 1),
                    (high, low, bounds.upper, -1),
                ):
                    rest = mpmath.fsum(
                        mpmath.exp(mpmath.mpf(float(others[n, j]))) for j in range(6) if j != i
                    )
                    odds = rest * mpmath.exp(-mpmath.mpf(float(own[n, i])))
                    exact = -mpmath.log1p(odds) if kind is LogSoftmax else 1 / (1 + odds)
                    assert sign * (exact - mpmath.mpf(float(given[n, i]))) >= 0
                    assert (
                        abs(exact - mpmath.mpf(float(given[n, i])))
                        <= 1e-11 * (1 + size) * abs(exact) + 1e-300
                    )


def test_softmax_bounds_hold_where_one_entry_has_almost_all():
    """Shares of 1 - e**-x, where an error of the exponent is no longer seen, and of the division is."""
    odds = np.linspace(3.0, 37.0, 400)
    x = np.stack([odds, np.zeros(400)], axis=1)
    low, high = (end[:, 0] for end in Softmax(-1).interval(Interval(x, x)))
    with mpmath.workdps(50):
        for i in range(400):
            share = 1 / (1 + mpmath.exp(-mpmath.mpf(float(odds[i]))))
            assert low[i] <= share <= high[i]


@pytest.mark.parametrize("kind", [Softmax, LogSoftmax])
def test_softmax_bounds_hold_where_exponents_are_long(kind):
    """An entry that reaches far above the others: at its lower end they are near, and all far below."""
    generator = np.random.default_rng(0)
    low = -1e6 + generator.normal(size=(40, 6))
    high = low.copy()
    high[:, 0] = 0.0
    found = kind(-1).interval(Interval(low, high)).lower[:, 0]
    with mpmath.workdps(50):
        for row, given in zip(low.tolist(), found.tolist(), strict=True):
            total = mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(v) + 10**6) for v in row))
            exact = mpmath.mpf(row[0]) + 10**6 - total
            assert given <= (exact if kind is LogSoftmax else mpmath.exp(exact))


@pytest.mark.parametrize("kind", [Softmax, LogSoftmax])
@pytest.mark.parametrize("radius", [0.0, 1e-6, 1.0])
def test_forms_hold_with_fifty_digits(kind, radius):
    """At corners, and at the centre, where the lines touch."""
    generator = np.random.default_rng(0)
    centre, form = generator.normal(size=(4, 5)) * 3, generator.normal(size=(4, 3, 5))
    box = Interval(centre - radius, centre + radius)
    pulled = kind(-1).relaxation(box).upper(form)
    points = [centre, *(np.where(generator.random((4, 5)) < 0.5, *box) for _ in range(4))]
    with mpmath.workdps(50):
        for x in points:
            for n in range(4):
                logits = [mpmath.mpf(float(v)) for v in x[n]]
                total = mpmath.log(mpmath.fsum(map(mpmath.exp, logits)))
                logs = [v - total for v in logits]
                y = logs if kind is LogSoftmax else list(map(mpmath.exp, logs))
                for q in range(3):
                    right = mpmath.fdot(map(float, pulled.forms[0][n, q]), logits)
                    right += mpmath.mpf(float(pulled.offset[n, q]))
                    assert mpmath.fdot(map(float, form[n, q]), y) <= right


def test_margins_of_log_softmax_are_exact():
    """Where coefficients sum to zero, log-softmax is linear, and so is its bound."""
    low, high = np.sort(np.random.default_rng(0).normal(size=(2, 2, 5)), axis=0)
    form = np.zeros((2, 1, 5))
    form[:, 0, 1], form[:, 0, 3] = 1.0, -1.0
    pulled = LogSoftmax(-1).relaxation(Interval(low, high)).upper(form)
    np.testing.assert_array_equal(pulled.forms[0], form)
    np.testing.assert_allclose(pulled.offset, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("operation", "shape", "order"),
    [
        (Softmax(-1), (6,), 2),
        (LogSoftmax(-1), (6,), 2),
        (LayerNorm((0,)), (6,), 1),
        (RmsNorm((0,)), (6,), 1),
    ],
)
def test_relaxations_close_in(operation, shape, order):
    """On a box of a tenth of the width the gap at the centre is a hundredth (softmax) or a tenth."""
    centre = np.random.default_rng(0).normal(size=(4, *shape))
    form = np.random.default_rng(1).normal(size=(4, 3, *shape))
    gaps, constant = [], []
    for radius in (1e-2, 1e-3):
        box = Interval(centre - radius, centre + radius)
        pulled = operation.relaxation(box).upper(form)
        at_centre = pulled.offset + np.einsum("nqk,nk->nq", pulled.forms[0], centre)
        value = np.einsum("nqk,nk->nq", form, operation(centre))
        gaps.append((at_centre - value).max())
        bounds = operation.interval(box)
        constant.append((np.abs(form) * (bounds.upper - bounds.lower)[:, None] / 2).sum(axis=2).max())
    assert gaps[1] < 1.3 * gaps[0] / 10**order
    assert gaps[0] < (0.05 if order == 2 else 0.8) * constant[0]


@pytest.mark.parametrize(("operation", "shape"), NORMS)
def test_normalisation(operation, shape):
    check_operation(operation, shape, lowers=False)
    check_operation(operation, shape, low=1.0, high=1.5, written=False, smooth=False)


def test_they_are_torch_s():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    x = rng.normal(size=(5, 6, 2, 2))
    t, weight, bias = torch.tensor(x), torch.tensor(SCALE), torch.tensor(SHIFT)
    pairs = [
        (GroupNorm(3, SCALE, SHIFT, 1e-3), F.group_norm(t, 3, weight, bias, 1e-3)),
        (GroupNorm(6, SCALE, SHIFT), F.instance_norm(t, weight=weight, bias=bias)),
        (LayerNorm((1, 2, 3)), F.layer_norm(t, (6, 2, 2))),
        (RmsNorm((2, 3), epsilon=1e-3), F.rms_norm(t, (2, 2), eps=1e-3)),
        (LpNormalize(1), F.normalize(t, dim=1)),
        (Softmax(1), F.softmax(t, 1)),
        (LogSoftmax(3), F.log_softmax(t, 3)),
    ]
    for operation, expected in pairs:
        np.testing.assert_allclose(operation(x[:, None])[:, 0], expected.numpy(), rtol=1e-12, atol=1e-14)


def test_normalised_vectors_are_bounded_whatever_the_box():
    wide = Interval(np.full((1, 5), -1e30), np.full((1, 5), 1e30))
    for operation, most in [
        (LayerNorm((0,), epsilon=0.0), 2.0),
        (RmsNorm((0,), epsilon=0.0), 5**0.5),
        (LpNormalize(0), 1.0),
        (LpNormalize(0, p=1), 1.0),
    ]:
        for box in (wide, Interval(np.full((1, 5), -np.inf), np.full((1, 5), np.inf))):
            bounds = operation.interval(box)
            np.testing.assert_allclose(bounds.upper, most, rtol=1e-12)
            np.testing.assert_allclose(bounds.lower, -most, rtol=1e-12)
        peak = np.eye(5)[None, 0] * 1e6
        np.testing.assert_allclose(operation(peak)[0, 0], most, rtol=1e-12)  # it is reached


def test_least_spread():
    """Two entries: half the squared distance of their intervals; many: near the least of samples."""
    low, high = np.array([[0.0, 3.0], [0.0, 1.0]]), np.array([[1.0, 4.0], [2.0, 5.0]])
    np.testing.assert_allclose(_least_spread(low, high)[:, 0], [2.0, 0.0], atol=1e-9)
    generator = np.random.default_rng(0)
    low, high = np.sort(generator.normal(size=(2, 5)) * 3, axis=0)
    best = np.inf
    for m in np.linspace(
        low.min(), high.max(), 20_001
    ):  # the best point for each m, which samples all optima
        x = np.clip(m, low, high)
        best = min(best, ((x - x.mean()) ** 2).sum())
    assert best * (1 - 1e-6) <= _least_spread(low[None], high[None])[0, 0] <= best * (1 + 1e-12)


def test_least_spread_holds_where_the_search_for_the_mean_ends_early():
    """An entry that can be anywhere follows the others: half a squared distance of one is the least."""
    low, high = np.array([[-1e15, 0.0, 1.0]]), np.array([[1e15, 0.0, 1.0]])
    assert _least_spread(low, high).item() <= 0.5


def test_sizes_hold_and_are_near():
    generator = np.random.default_rng(0)
    for rescale in (
        Rescale(),
        Rescale(centred=False),
        Rescale(False, 1, False),
        Rescale(False, 2, False),
    ):
        centre = generator.normal(size=(50, 6))
        radius = generator.uniform(0, 0.2, size=(50, 6))
        sizes = rescale.sizes(Interval(centre - radius, centre + radius))
        for _ in range(50):
            x = centre + generator.choice([-1, 1], size=(50, 6)) * radius
            size = rescale._size(Centre().linear(x) if rescale.centred else x)
            assert (sizes.lower <= size).all() and (size <= sizes.upper).all()
        assert (sizes.upper - sizes.lower < 2.5 * radius.sum(axis=1, keepdims=True)).all()


def test_small_and_large_vectors_keep_their_direction():
    for size in (1e-200, 1.0, 1e200):
        x = np.array([[3.0, 4.0]]) * size
        np.testing.assert_allclose(LpNormalize(0)(x), [[0.6, 0.8]])
        bounds = LpNormalize(0).interval(Interval(x, x))
        assert (bounds.lower <= [[0.6, 0.8]]).all() and (bounds.upper >= [[0.6, 0.8]]).all()
    np.testing.assert_array_equal(LpNormalize(0)(np.zeros((1, 2))), 0.0)


def test_counts():
    norm = LayerNorm((2,), SCALE[:4], SHIFT[:4])
    assert norm.n_parameters == 8 and norm.multiply_adds((1, 3, 4)) == 0
    assert GroupNorm(2).n_parameters == 0 and RmsNorm((1,), SCALE).n_parameters == 6


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Softmax(2).shape((1, 3)), "axis 2"),
        (lambda: LayerNorm((3,)).shape((1, 3)), "axes"),
        (lambda: GroupNorm(4).shape((1, 6)), "4 groups"),
        (lambda: LpNormalize(1, p=3), "p must be"),
        (lambda: RmsNorm((1,), epsilon=-1.0), "epsilon"),
    ],
)
def test_what_does_not_fit_is_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()
