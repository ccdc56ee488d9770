"""Bounds on the difference contain it, and tying matched units makes them small."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.differential import _delta_lines, gap_bounds, sum_of_forms, tied
from pindown.relaxation.linear import LinearForms, largest, relax
from tests.equivalence.comparison.nets import exact_gap, perturbed, random_net, unit_box


@pytest.mark.parametrize("size", [0.0, 1e-13, 1e-7, 1e-3, 0.3, 3.0])
@pytest.mark.parametrize("widths", [(2, 4, 1), (3, 6, 5, 2), (2, 5, 5, 5, 1)])
def test_upper_bounds_hold_in_exact_arithmetic(widths, size):
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e-100, 1e70):
        a = random_net(widths, rng, scale)
        b = perturbed(a, size, rng)
        lower = np.stack([-np.ones(widths[0]), rng.normal(size=widths[0])])
        upper = lower + np.array([[2.0], [1e-3]])
        bounds, _ = gap_bounds(a, b, lower, upper)
        for low, high, bound in zip(lower, upper, bounds, strict=True):
            mix = rng.random((4, widths[0]))
            for x in [low, high, *np.clip(low + mix * (high - low), low, high)]:
                assert bound == np.inf or exact_gap(a, b, x) <= Fraction(float(bound))


def test_unequal_shapes_are_bounded_too():
    rng = np.random.default_rng(2)
    a, b = random_net((3, 6, 6, 2), rng), random_net((3, 9, 2), rng)
    box = unit_box(3)
    bounds, _ = gap_bounds(a, b, box.lower[None], box.upper[None])
    X = box.sample(5000, rng)
    assert np.abs(a(X) - b(X)).max() <= bounds[0]
    with pytest.raises(ValueError, match="equal widths"):
        tied(*(relax(net, box.lower[None], box.upper[None]) for net in (a, b)))


def test_equal_networks_have_no_difference():
    a = random_net((5, 30, 30, 30, 3), np.random.default_rng(3))
    box = unit_box(5)
    bounds, _ = gap_bounds(a, a, box.lower[None], box.upper[None])
    assert bounds[0] < 1e-290


def test_tied_bounds_shrink_with_the_difference_and_independent_ones_do_not():
    rng = np.random.default_rng(4)
    a, box = random_net((4, 20, 20, 20, 3), rng), unit_box(4)
    b = perturbed(a, 1e-8, rng)
    first, second = (relax(net, box.lower[None], box.upper[None]) for net in (a, b))
    alone = np.max(first.bounds[-1].upper - second.bounds[-1].lower)
    together = gap_bounds(a, b, box.lower[None], box.upper[None])[0][0]
    X = box.sample(5000, rng)
    seen = np.abs(a(X) - b(X)).max()
    assert together < 300 * seen
    assert alone > 20_000 * together


def test_forms_lie_above_the_difference():
    rng = np.random.default_rng(5)
    a, box = random_net((3, 8, 8, 2), rng), unit_box(3)
    b = perturbed(a, 0.1, rng)
    _, forms = gap_bounds(a, b, box.lower[None], box.upper[None])
    X = box.sample(2000, rng)
    delta = a(X) - b(X)
    assert np.all(X @ forms.weight[0].T + forms.offset[0] >= np.hstack([delta, -delta]) - 1e-12)


def test_differences_of_units_hold_where_everything_cancels():
    """Biases differ in a direction that the last layer, of size 1e9, does not see but for rounding."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        W, b, moved = rng.normal(size=(12, 2)), 2 + rng.random(12), rng.random(12)
        V = 1e9 * rng.normal(size=(1, 12))
        V -= (V @ moved) / (moved @ moved) * moved
        x = 1e-9 * rng.normal(size=(1, 2))
        nets = [ReluNetwork.from_layers([(W, c), (V, [0.0])]) for c in (b + moved, b)]
        pair = tied(*(relax(net, x, x) for net in nets))
        f, g = (net.as_fractions()(list(x[0]))[0] for net in nets)
        upper, lower = largest(pair.upper_forms(np.array([[1.0], [-1.0]])), x, x)[0]
        assert -Fraction(lower) <= f - g <= Fraction(upper)


def test_sums_of_forms_are_rounded_up():
    rng = np.random.default_rng(6)
    one, two = rng.normal(size=(2, 300, 1, 3)) * 10.0 ** rng.integers(-8, 8, (2, 300, 1, 3))
    c = rng.normal(size=(2, 300, 1))
    reach = rng.random((300, 3)) * 100
    found = sum_of_forms(LinearForms(one, c[0]), LinearForms(two, c[1]), reach)
    for i in range(300):
        for x in (reach[i], -reach[i], reach[i] * rng.choice([-1, 1], 3)):
            point = [Fraction(v) for v in x]
            p, q, r = (
                sum(map(Fraction.__mul__, map(Fraction, A[i, 0]), point))
                for A in (one, two, found.weight)
            )
            assert p + q + Fraction(c[0, i, 0]) + Fraction(c[1, i, 0]) <= r + Fraction(
                found.offset[i, 0]
            )


def test_lines_of_differences_enclose_them():
    rng = np.random.default_rng(7)
    za, zb = (np.sort(rng.normal(size=(2, 1, 600)) + rng.normal(size=(1, 1, 600)), axis=0) for _ in "ab")
    mix = rng.random((200, 2, 600))
    mix[:4] = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[:, :, None]
    va, vb = za[0] + mix[:, 0] * (za[1] - za[0]), zb[0] + mix[:, 1] * (zb[1] - zb[0])
    delta = va - vb
    # Closer than the ends of both allow, as tied weights give it; only such points count.
    ends = np.stack([za[0] - zb[1], za[1] - zb[0]])
    z = Interval(0.7 * ends[0] + 0.3 * ends[1], 0.3 * ends[0] + 0.7 * ends[1])
    lines = _delta_lines(z, Interval(*za), Interval(*zb))
    true = np.maximum(va, 0) - np.maximum(vb, 0)
    above = lines.above * delta + lines.own_part * va + lines.above_shift
    below = lines.below * delta + lines.own_part * va + lines.below_shift
    inside = (delta >= z.lower) & (delta <= z.upper)
    assert inside.any(axis=0).mean() > 0.9
    assert np.all((below <= true + 1e-12)[inside]) and np.all((true <= above + 1e-12)[inside])


def test_every_pattern_of_signs_of_a_pair_is_enclosed():
    # One unit each, of all stable and unstable kinds.
    for ba in (-2.0, -0.5, 0.0, 0.5, 2.0):
        for bb in (-2.0, -0.5, 0.0, 0.5, 2.0):
            for wb in (1.0, -1.0, 0.3):
                a = ReluNetwork.from_layers([([[1.0]], [ba]), ([[1.0]], [0]), ([[1.0]], [0])])
                b = ReluNetwork.from_layers([([[wb]], [bb]), ([[1.0]], [0]), ([[1.0]], [0])])
                pair = tied(*(relax(net, np.array([[-1.0]]), np.array([[1.0]])) for net in (a, b)))
                X = np.linspace(-1, 1, 101)[:, None]
                delta = (a(X) - b(X))[:, 0]
                assert pair.deltas[-1].lower[0, 0] <= delta.min()
                assert pair.deltas[-1].upper[0, 0] >= delta.max()
