"""Smooth functions: values against mpmath, turning points, proved lines and how tight they are."""

import warnings

import mpmath as mp
import numpy as np
import pytest

from pindown.errors import UnsupportedModelError
from pindown.model.builder import Builder
from pindown.model.operations.operation import Interval
from pindown.model.operations.smooth import (
    Celu,
    Cos,
    Elu,
    Erf,
    Exp,
    Gelu,
    HardSwish,
    Log,
    Mish,
    Power,
    Reciprocal,
    Selu,
    Sigmoid,
    Silu,
    Sin,
    Softplus,
    Softsign,
    Sqrt,
    Tanh,
)
from pindown.model.operations.trigonometric import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cosh,
    Sinh,
    Tan,
)
from tests.model.properties import check_operation


def sigma(x):
    return 1 / (1 + mp.exp(-x))


def exponential(alpha, gamma=1.0, width=1.0):
    alpha, gamma, width = map(mp.mpf, (alpha, gamma, width))
    return lambda x: gamma * (x if x > 0 else alpha * mp.expm1(x / width))


# Operation, its definition, and where it is defined.
ALL = (-mp.inf, mp.inf)
FUNCTIONS = [
    (Sigmoid(), sigma, ALL),
    (Tanh(), mp.tanh, ALL),
    (Erf(), mp.erf, ALL),
    (Gelu(), lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2 if x > -1e6 else mp.mpf(0), ALL),
    (Gelu(root=1.4140625), lambda x: x * mp.erfc(-x / 1.4140625) / 2 if x > -1e6 else mp.mpf(0), ALL),
    (Gelu(True), lambda x: x * sigma(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf(44715) / 10**6 * x**3)), ALL),
    (Silu(), lambda x: x * sigma(x), ALL),
    (Mish(), lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), ALL),
    (Elu(0.75), exponential(0.75), ALL),
    (Elu(-0.5), exponential(-0.5), ALL),
    (Selu(1.5, 1.25), exponential(1.5, 1.25), ALL),
    (Celu(0.3), exponential(0.3, width=0.3), ALL),
    (Softplus(), lambda x: mp.log1p(mp.exp(x)), ALL),
    (Softsign(), lambda x: x / (1 + abs(x)), ALL),
    (HardSwish(), lambda x: x * max(0, min(1, x / 6 + mp.mpf(1) / 2)), ALL),
    (Exp(), mp.exp, ALL),
    (Log(), mp.log, (0, mp.inf)),
    (Sqrt(), mp.sqrt, (0, mp.inf)),
    (Reciprocal(), lambda x: 1 / x, (0, mp.inf)),
    (Power(2.0), lambda x: x**2, ALL),
    (Power(3.0), lambda x: x**3, ALL),
    (Power(4.0), lambda x: x**4, ALL),
    (Power(1.0), lambda x: x, ALL),
    (Power(0.0), lambda x: mp.mpf(1), ALL),
    (Power(1.7), lambda x: x ** mp.mpf(1.7), (0, mp.inf)),
    (Power(-2.5), lambda x: x ** mp.mpf(-2.5), (0, mp.inf)),
    (Power(-3.0), lambda x: x**-3, (-mp.inf, 0)),
    (Sin(), mp.sin, ALL),
    (Cos(), mp.cos, ALL),
    (Tan(), mp.tan, (-1.5, 1.5)),
    (Atan(), mp.atan, ALL),
    (Asin(), mp.asin, (-1, 1)),
    (Acos(), mp.acos, (-1, 1)),
    (Atanh(), mp.atanh, (-1, 1)),
    (Sinh(), mp.sinh, ALL),
    (Cosh(), mp.cosh, ALL),
    (Asinh(), mp.asinh, ALL),
    (Acosh(), mp.acosh, (1, mp.inf)),
]
every = pytest.mark.parametrize(
    ("operation", "definition", "domain"), FUNCTIONS, ids=[repr(f[0]) for f in FUNCTIONS]
)


def points(domain, n, seed=0, largest=300):
    """Numbers of all sizes inside a domain, some close to its ends."""
    rng = np.random.default_rng(seed)
    low, high = (float(end) for end in domain)
    x = np.concatenate(
        [10.0 ** rng.uniform(-largest, largest, n), 10.0 ** rng.uniform(-4, 2, n), rng.uniform(0, 40, n)]
    )
    x = np.concatenate([x, -x, [38.0, -38.0, 700.0, -740.0]])
    if np.isfinite(high - low):
        x = np.concatenate([rng.uniform(low, high, 2 * n), x / 40])
    elif np.isfinite(low):
        x = low + x
    return x[(low < x) & (x < high)]


def relaxed(operation, low, high):
    low, high = np.atleast_1d(low)[None], np.atleast_1d(high)[None]
    made = operation.relaxation(Interval(low, high))
    return [line[0] for line in (made.lower[0], made.below, made.upper_slopes[0], made.above)]


@every
def test_keeps_the_contract(operation, definition, domain):
    low, high = max(domain[0], -3.0), min(domain[1], 3.0)
    inside = 0.05 * (high - low)
    low, high = (low + inside if low > -3 else low), (high - inside if high < 3 else high)
    lowers = None if operation.as_output_activation((1,)) else False
    check_operation(operation, (1, 2, 3), low=low, high=high, lowers=lowers, n=3)


# ---------------------------------------------------------------------- what is assumed


@every
def test_values_are_a_hundred_times_better_than_assumed(operation, definition, domain):
    x = points(domain, 40, largest=5 if isinstance(operation, (Sin, Cos, Tan)) else 300)
    y = operation(x)
    with mp.workdps(60):
        for at, value in zip(x.tolist(), y.tolist(), strict=True):
            if abs(value) < 1e300:
                margin = operation.relative * abs(value) + operation.absolute
                assert abs(definition(mp.mpf(at)) - value) <= 0.01 * margin, at


@every
def test_second_derivatives_are_a_hundred_times_better_than_assumed(operation, definition, domain):
    x = points(domain, 12, largest=1)
    x = x[(np.abs(x) > 1e-3) & (np.abs(x) < 12)]
    with np.errstate(all="ignore"):
        second = operation.second(x)
    with mp.workdps(100):
        for at, value in zip(x.tolist(), second.tolist(), strict=True):
            exact = mp.diff(definition, mp.mpf(at), 2, h=mp.mpf(10) ** -30)
            margin = 2.0**-36 * abs(value) + operation.blur
            assert abs(exact - value) <= 0.01 * margin + 1e-25 * (1 + abs(exact)), at


@every
def test_turning_points_are_where_they_are_said_to_be(operation, definition, domain):
    """Values and derivatives there against mpmath; between them nothing turns."""
    if isinstance(operation, (Sin, Cos)):
        return  # infinitely many: looked for by multiples of pi
    with mp.workdps(40):
        for x, value in operation.turns:
            assert abs(definition(mp.mpf(x)) - value) < 1e-15
            if x not in operation.kinks:
                assert abs(mp.diff(definition, mp.mpf(x))) < 1e-13
    low, high = max(domain[0], -12.0), min(domain[1], 12.0)
    grid = np.linspace(low, high, 40_002)[1:-1]
    jumps = np.array(
        [*operation.kinks, *(x for x, _ in operation.bends), *(x for x, _ in operation.turns)]
    )
    near = (
        (np.abs(grid[1:, None] - jumps) < 2e-3).any(axis=1)
        if len(jumps)
        else np.zeros(len(grid) - 1, bool)
    )
    for values, turns in (
        (operation.function(grid), operation.turns),
        (operation.second(grid), operation.bends),
    ):
        steps = np.where(near, np.nan, np.diff(values))
        steps[np.abs(steps) < 1e-13] = np.nan
        signs = np.sign(steps)
        for left, right in zip(
            [low, *sorted(x for x, _ in turns)], [*sorted(x for x, _ in turns), high], strict=True
        ):
            between = signs[(grid[:-1] > left) & (grid[1:] < right)]
            between = between[~np.isnan(between)]
            assert len(set(between.tolist())) <= 1, (left, right)


def test_second_derivatives_at_their_turning_points():
    for operation, definition, _ in FUNCTIONS:
        smooth = [(x, v) for x, v in operation.bends if not isinstance(operation, (Elu, Celu, Softsign))]
        with mp.workdps(50):
            for x, value in smooth:
                assert abs(mp.diff(definition, mp.mpf(x), 2) - value) < 1e-14, operation
    assert Elu(0.5).bends == ((0.0, 0.5),) and Celu(0.5).bends == ((0.0, 2.0),)
    assert Selu(2.0, 3.0).bends == ((0.0, 6.0),)


# ---------------------------------------------------------------------- bounds


def intervals(domain, n, seed, sizes=(-8, 4)):
    """Intervals of all widths and places inside a domain."""
    rng = np.random.default_rng(seed)
    low, high = (float(end) for end in domain)
    centre = rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-3, 2.5, n)
    if np.isfinite(high - low):
        centre = rng.uniform(low, high, n)
    ends = np.sort(
        centre
        + np.stack([-rng.uniform(0, 1, n), rng.uniform(0, 1, n)]) * 10.0 ** rng.uniform(*sizes, n),
        axis=0,
    )
    span = 1e-9 if low in (0.0, -1.0) or high in (0.0, 1.0) else 0.0
    ends = np.clip(ends, low + span, high - span)
    return ends[:, ends[0] < ends[1]]


@every
def test_lines_and_intervals_hold(operation, definition, domain):
    """At many points in float64, and at some with mpmath and nothing allowed."""
    low, high = intervals(domain, 150, seed=1)
    finite = np.isfinite(operation(low)) & np.isfinite(operation(high))
    low, high = low[finite], high[finite]
    values = operation.interval(Interval(low[None], high[None]))
    a, b, s, t = relaxed(operation, low, high)
    share = np.concatenate(
        [np.linspace(0, 1, 200), 10.0 ** np.linspace(-9, -2, 30), 1 - 10.0 ** np.linspace(-9, -2, 30)]
    )
    x = low + share[:, None] * (high - low)
    special = [-3.0, 0.0, 3.0, *(at for at, _ in (*operation.turns, *operation.bends))]  # kinks, turns
    x = np.clip(np.concatenate([x, *(np.full((1, low.size), at) for at in special)]), low, high)
    y = operation(x)
    slack = 1e-12 * (np.abs(y) + np.maximum(np.abs(a), np.abs(s)) * np.abs(x)) + 1e-300
    assert (a * x + b <= y + slack).all() and (y <= s * x + t + slack).all()
    assert (values.lower <= y).all() and (y <= values.upper).all()
    rng = np.random.default_rng(2)
    with mp.workdps(50):
        for i in rng.choice(low.size, 25, replace=False):
            for point in (low[i], high[i], rng.uniform(low[i], high[i])):
                exact = definition(mp.mpf(float(point)))
                assert mp.mpf(a[i]) * point + b[i] <= exact <= mp.mpf(s[i]) * point + t[i]
                assert values.lower[0, i] <= exact <= values.upper[0, i]


@pytest.mark.parametrize(
    ("operation", "kink"),
    [(HardSwish(), -3.0), (HardSwish(), 3.0), (Elu(0.5), 0.0), (Elu(2.0), 0.0), (Selu(), 0.0)],
    ids=repr,
)
def test_lines_hold_at_kinks(operation, kink):
    """Which the function reaches above or below all chords beside them."""
    low, high = kink + np.random.default_rng(7).uniform(0, 1, (2, 200)) * [[-1.0], [1.0]]
    a, b, s, t = relaxed(operation, low, high)
    y = operation(np.array([kink])).item()
    assert (a * kink + b <= y + 1e-15).all() and (y <= s * kink + t + 1e-15).all()


@every
def test_hulls_hold_between_the_ends(operation, definition, domain):
    """Values, and second derivatives where no kink lies between, are between what the ends say."""
    low, high = intervals(domain, 150, seed=6, sizes=(-2, 1))
    x = np.linspace(low, high, 41)
    for function, hull, breaks in (
        (operation.function, operation.hull, ()),
        (operation.second, operation.curvature, operation.kinks),
    ):
        with np.errstate(all="ignore"):
            y = function(x)
            least, most = hull(low, high, y[0], y[-1])
        known = np.isfinite(y).all(axis=0) & operation.defined(low, high)
        for at in breaks:
            known &= (high < at) | (low > at)
        slack = 1e-9 * np.abs(y).max(axis=0, where=known, initial=0.0) + 1e-12
        assert ((least - slack <= y) & (y <= most + slack))[:, known].all()


@every
def test_lines_hold_where_float64_ends(operation, definition, domain):
    """On intervals far out and close to zero, where curvatures and squares of widths underflow."""
    rng = np.random.default_rng(5)
    start = rng.choice([-1, 1], 40) * 10.0 ** rng.uniform(-250, 150, 40)
    ends = [start, start * (1 + 10.0 ** rng.uniform(-6, 0.3, 40))]
    ends = np.sort(np.concatenate([ends, [[1e118, 1e-187], [1.2e118, 1.001e-187]]], axis=1), axis=0)
    low, high = ends[:, (domain[0] < ends[0]) & (ends[1] < domain[1])]
    if isinstance(operation, (Sin, Cos)) or not low.size:
        low, high = low[np.abs(low) < 1], high[np.abs(low) < 1]
    a, b, s, t = relaxed(operation, low, high)
    for i, x in enumerate(np.linspace(low, high, 9).T):
        with mp.workdps(50):
            for point in np.clip(x, low[i], high[i]).tolist():
                exact = definition(mp.mpf(point))
                assert b[i] == -np.inf or mp.mpf(a[i]) * point + b[i] <= exact
                assert t[i] == np.inf or exact <= mp.mpf(s[i]) * point + t[i]


@every
def test_lines_are_as_near_as_they_can_be(operation, definition, domain):
    """Their mean gap is hardly above that of the best two parallel lines, which a search finds."""
    low, high = intervals(domain, 20, seed=3, sizes=(-1, 1.2))
    keep = (np.abs(low) < 20) & (np.abs(high) < 20)
    low, high = low[keep], high[keep]
    a, b, s, t = relaxed(operation, low, high)
    for i in range(low.size):
        x = np.linspace(low[i], high[i], 401)
        y = operation(x)
        slopes = np.diff(y) / np.diff(x)
        left, right = slopes.min(), slopes.max()

        def gap(slope, x=x, y=y):
            return np.ptp(y - slope * x)

        for _ in range(60):
            m, n = left + (right - left) / 3, right - (right - left) / 3
            left, right = (left, n) if gap(m) < gap(n) else (m, right)
        ours = (s[i] - a[i]) * (low[i] + high[i]) / 2 + t[i] - b[i]
        limit = 1.1 if isinstance(operation, Tan) else 1.05
        assert ours <= limit * gap(left) + 1e-10 * np.abs(y).max() + 4 * operation.absolute + 1e-290


def test_every_entry_has_its_own_lines_however_many_there_are():
    low, high = intervals(ALL, 3000, seed=4)
    many = relaxed(Gelu(), low, high)
    for i in (0, 1023, 1024, low.size - 1):
        assert [line[i] for line in many] == [line[0] for line in relaxed(Gelu(), low[i], high[i])]


@every
def test_lines_on_narrow_intervals_have_the_slope_of_the_tangent(operation, definition, domain):
    """There a chord is the quotient of two roundings, of any size."""
    low = float(max(domain[0], -0.75) + min(domain[1], 0.76)) / 2 + 0.2
    if domain == (1, mp.inf):
        low = 1.5
    a, _, s, _ = relaxed(operation, low, low * (1 + 2.0**-40))
    slope = float(operation.derivative(np.array(low)))
    for line in (a, s):
        assert line == 0 or abs(line - slope) <= 1e-9 * (1 + abs(slope))


# ---------------------------------------------------------------------- edges


def bounds(operation, low, high):
    made = operation.interval(Interval(np.array([[low]]), np.array([[high]])))
    return float(made.lower[0, 0]), float(made.upper[0, 0])


@pytest.mark.parametrize(
    ("operation", "low", "high", "expected"),
    [
        (Sigmoid(), -np.inf, np.inf, (0, 1)),
        (Tanh(), -np.inf, 0.0, (-1, 0)),
        (Gelu(), -np.inf, np.inf, (-0.16997120747990366, np.inf)),
        (Gelu(True), -np.inf, -3.0, (-0.0036373920817729943, 0)),
        (Silu(), -np.inf, 0.0, (-0.2784645427610738, 0)),
        (Mish(), -2.0, -1.0, (-0.3088434130172504, -0.25250148269570885)),
        (HardSwish(), -np.inf, 3.0, (-0.375, 3)),
        (Elu(-0.5), -1.0, 1.0, (0, 1)),
        (Softsign(), 1.0, np.inf, (0.5, 1)),
        (Exp(), -np.inf, 800.0, (0, np.inf)),
        (Log(), 0.0, 1.0, (-np.inf, 0)),
        (Log(), -1.0, 1.0, (-np.inf, np.inf)),
        (Sqrt(), 0.0, 4.0, (0, 2)),
        (Sqrt(), -1.0, 4.0, (-np.inf, np.inf)),
        (Reciprocal(), 0.0, 1.0, (-np.inf, np.inf)),
        (Reciprocal(), -2.0, -1.0, (-1, -0.5)),
        (Power(-2.0), -1.0, 1.0, (-np.inf, np.inf)),
        (Power(2.0), -1.0, 3.0, (0, 9)),
        (Power(3.0), -np.inf, 2.0, (-np.inf, 8)),
        (Power(0.5), -1.0, 2.0, (-np.inf, np.inf)),
        (Sin(), 0.0, 1.6, (0, 1)),
        (Sin(), 4.0, 5.0, (-1, np.sin(4.0))),
        (Sin(), -np.inf, 0.0, (-1, 1)),
        (Cos(), 3.1, 3.2, (-1, np.cos(3.2))),
        (Cos(), 1e9, 1e9 + 1e-3, (-1, 1)),
        (Tan(), 1.0, 2.0, (-np.inf, np.inf)),
        (Asin(), 0.0, 1.5, (-np.inf, np.inf)),
        (Acosh(), 0.5, 2.0, (-np.inf, np.inf)),
        (Cosh(), -1.0, 2.0, (1, np.cosh(2.0))),
    ],
)
def test_intervals_of_known_cases(operation, low, high, expected):
    np.testing.assert_allclose(bounds(operation, low, high), expected, rtol=1e-10, atol=1e-12)


def test_a_value_beyond_float64_still_has_a_lower_bound():
    low, high = bounds(Exp(), 800.0, 900.0)
    assert 1e307 < low < np.inf and high == np.inf
    low, high = bounds(Power(3.0), -1e200, -1e199)
    assert low == -np.inf and -np.inf < high < -1e307


@every
def test_boxes_of_any_size_give_lines_that_are_numbers(operation, definition, domain):
    ends = [-np.inf, -1e308, -1e9, -1.0, -5e-324, 0.0, 1.0, 1e9, 1e308, np.inf]
    low, high = np.array([(a, b) for a in ends for b in ends if a <= b]).T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operation(np.array(ends))
        operation.pull_back(np.ones(len(ends)), np.array(ends))
        values = operation.interval(Interval(low[None], high[None]))
        made = operation.relaxation(Interval(low[None], high[None]))
        pulled = made.upper(np.concatenate([np.eye(low.size), -np.eye(low.size)])[None])
    assert (values.lower <= values.upper).all()
    assert not np.isnan(pulled.offset).any() and np.isfinite(pulled.forms[0]).all()
    for x in (-1e300, -1e9, -1.0, 0.5, 1.0, 1e9, 1e300):
        y = operation(np.array([x])).item()
        if np.isfinite(y):
            inside = (low <= x) & (x <= high)
            assert ((values.lower[0] <= y) & (y <= values.upper[0]))[inside].all()


def test_a_model_outside_of_a_domain_says_so():
    graph = Builder((1, 2))
    model = graph.model(graph.add(Log(), graph.input), input_shape=(2,))
    np.testing.assert_allclose(model([1.0, np.e]), [0.0, 1.0])
    with pytest.raises((ValueError, OverflowError, UnsupportedModelError)):
        model([1.0, -1.0])


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="no root"):
        Gelu(True, 1.4)
    for make in (lambda: Elu(np.inf), lambda: Celu(0.0), lambda: Power(np.nan)):
        with pytest.raises(UnsupportedModelError):
            make()


class Nodes:
    """Writes down the names of nodes and the numbers they use."""

    def __init__(self):
        self.kinds, self.numbers = [], []

    def node(self, kind, inputs, **attributes):
        self.kinds.append(kind)
        return f"{kind}({', '.join(inputs)})"

    def weight(self, values, name="weight"):
        return f"{float(values):.6g}"


def test_activations_without_a_node_are_written_as_exporters_do():
    assert Gelu().write(Nodes(), "x") == "Mul(Mul(x, Add(Erf(Div(x, 1.41421)), 1)), 0.5)"
    assert Silu().write(Nodes(), "x") == "Mul(x, Sigmoid(x))"
    assert Gelu(True).write(Nodes(), "x") == (
        "Mul(0.5, Mul(x, Add(1, Tanh(Mul(0.797885, Add(x, Mul(0.044715, Mul(x, Mul(x, x)))))))))"
    )
    assert Celu(2.0).write(Nodes(), "x") == "Mul(Elu(Div(x, 2)), 2)"


def test_a_last_sigmoid_is_an_output_activation():
    assert Sigmoid().as_output_activation((1, 3)) == "sigmoid"
    assert Tanh().as_output_activation((1, 3)) is None
