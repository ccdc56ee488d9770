"""Linear bounds hold for the real-number network, and are never worse than intervals."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from pindown.box import Box
from pindown.deadline import Deadline
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.linear import LinearForms, interval_image, largest, linear_bounds, relax
from pindown.relaxation.triangle import triangle_relaxation


def random_net(widths, rng, scale=1.0):
    return ReluNetwork.from_layers(
        [
            (scale * rng.normal(size=(m, n)) / np.sqrt(n), 0.3 * scale * rng.normal(size=m))
            for n, m in pairwise(widths)
        ]
    )


def check_contains_exact(net, box, bounds, points):
    exact = net.as_fractions()
    for x in points:
        values = exact.trace([Fraction(float(v)) for v in np.clip(x, box.lower, box.upper)])
        for z, (low, high) in zip(values, bounds, strict=True):
            for value, a, b in zip(z, low, high, strict=True):
                assert a == -np.inf or Fraction(float(a)) <= value
                assert b == np.inf or value <= Fraction(float(b))


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e60, 1e-60, 1e-160, 1e-320])
@pytest.mark.parametrize("widths", [(2, 3, 1), (3, 5, 4, 2), (2, 4, 4, 4, 1)])
def test_bounds_hold_in_exact_arithmetic(widths, scale):
    rng = np.random.default_rng(1)
    for radius in (1.0, 1e-9, 0.0):
        net = random_net(widths, rng, scale)
        center = rng.normal(size=widths[0])
        box = Box(center - radius, center + radius)
        points = [box.lower, box.upper, box.center, *box.sample(3, rng)]
        check_contains_exact(net, box, linear_bounds(net, box), points)


def test_never_wider_than_intervals_and_often_far_tighter():
    rng = np.random.default_rng(2)
    widths = []
    for _ in range(30):
        net = random_net((4, 12, 12, 12, 2), rng)
        box = Box.cube(4, -1, 1)
        fine, plain = linear_bounds(net, box), interval_bounds(net, box)
        for z, w in zip(fine, plain, strict=True):
            assert np.all(z.lower >= w.lower)
            assert np.all(z.upper <= w.upper)
        widths.append(
            np.max(plain[-1].upper - plain[-1].lower) / np.max(fine[-1].upper - fine[-1].lower)
        )
    assert np.median(widths) > 1.5


def test_exact_where_no_unit_changes_sign():
    rng = np.random.default_rng(3)
    net = random_net((5, 20, 20, 3), rng)
    x = rng.normal(size=5)
    box = Box(x - 1e-7, x + 1e-7)
    A, _ = net.local_affine(x)
    spread = np.abs(A) @ box.radius
    found = linear_bounds(net, box)[-1]
    assert np.allclose(found.upper - found.lower, 2 * spread, rtol=1e-4)


def test_forms_of_the_outputs():
    rng = np.random.default_rng(4)
    net, box = random_net((3, 10, 10, 4), rng), Box.cube(3, -1, 1)
    rows = rng.normal(size=(6, 4))
    found = linear_bounds(net, box, outputs=rows)[-1]
    values = net(box.sample(5000, rng)) @ rows.T
    assert np.all(values >= found.lower - 1e-12)
    assert np.all(values <= found.upper + 1e-12)
    single = linear_bounds(net, box)[-1]
    crude = np.maximum(rows, 0) @ single.upper - np.maximum(-rows, 0) @ single.lower
    assert np.mean(found.upper < crude) > 0.5


def test_sparse_layers_give_the_same_and_many_boxes_hold():
    rng = np.random.default_rng(5)
    net = random_net((6, 15, 15, 2), rng)
    sparse = ReluNetwork.from_layers([(sp.csr_array(W), b) for W, b in net.layers])
    lower = rng.normal(size=(7, 6))
    upper = lower + rng.random((7, 6))
    many, other = relax(net, lower, upper), relax(sparse, lower, upper)
    for w, s in zip(many.bounds, other.bounds, strict=True):
        assert np.allclose(s.lower, w.lower, rtol=1e-9, atol=1e-12)
        assert np.allclose(s.upper, w.upper, rtol=1e-9, atol=1e-12)
    for i in range(7):
        X = Box(lower[i], upper[i]).sample(500, rng)
        for z, w in zip(net.trace(X), many.bounds, strict=True):
            assert np.all((z >= w.lower[i] - 1e-12) & (z <= w.upper[i] + 1e-12))


def test_lines_enclose_relu():
    rng = np.random.default_rng(6)
    ends = np.sort(rng.normal(size=(2, 1, 500)) * 10.0 ** rng.integers(-300, 300, (1, 1, 500)), axis=0)
    ends[:, :, ::7] *= 0.0
    lines = triangle_relaxation(Interval(ends[0], ends[1]))
    for z in (ends[0], ends[1], np.zeros_like(ends[0]), (ends[0] + ends[1]) / 2):
        inside = (z >= ends[0]) & (z <= ends[1])
        relu = np.maximum(z, 0.0)
        assert np.all((lines.lower * z <= relu)[inside])
        assert np.all((lines.slope * z + lines.shift >= relu * (1 - 1e-15))[inside])


def test_lines_enclose_relu_in_rationals():
    rng = np.random.default_rng(6)
    ends = rng.random((2, 1, 300)) * 10.0 ** rng.integers(-12, 12, (2, 1, 300))
    ends[:, :, :20] *= 2.0**-1060
    lines = triangle_relaxation(Interval(-ends[0], ends[1]))
    for low, high, *line in zip(-ends[0, 0], ends[1, 0], *(part[0] for part in lines), strict=True):
        below, slope, shift = map(Fraction, line)
        for z in (Fraction(low), Fraction(high)):
            assert below * z <= max(z, 0) <= slope * z + shift


def test_lines_are_the_chord_and_the_nearer_axis():
    low, high = np.array([[-1.0, -3.0, 2.0, -4.0]]), np.array([[3.0, 1.0, 5.0, -2.0]])
    lines = triangle_relaxation(Interval(low, high))
    assert lines.lower.tolist() == [[1, 0, 1, 0]]
    np.testing.assert_allclose(lines.slope, [[0.75, 0.25, 1, 0]], rtol=1e-14)
    np.testing.assert_allclose(lines.shift, [[0.75, 0.75, 0, 0]], rtol=1e-14)


def test_largest_of_a_form_is_rounded_up():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(50, 4))
    A = 1e6 * rng.normal(size=(50, 1, 4))
    c = -np.einsum("nqd,nd->nq", A, x)  # at x nothing but rounding is left
    found = largest(LinearForms(A, c), x, x)[:, 0]
    for value, weight, offset, point in zip(found, A[:, 0], c[:, 0], x, strict=True):
        exact = Fraction(offset) + sum(
            map(Fraction.__mul__, *(map(Fraction, v) for v in (weight, point)))
        )
        assert exact <= Fraction(value) <= exact + Fraction(1e-5)


@pytest.mark.parametrize("part", ["below", "above"])
def test_bounds_hold_where_everything_cancels(part):
    # Large terms in one layer cancel: its rounding is many times what later layers are charged for.
    rng = np.random.default_rng(9)
    for _ in range(40):
        W = rng.normal(size=(12, 2)) * (1e9 if part == "below" else 1.0)
        x = rng.normal(size=2)
        b = 1.0 + rng.random(12) - W @ x
        V = rng.normal(size=(1, 12)) * (1e9 if part == "above" else 1.0)
        net = ReluNetwork.from_layers([(W, b), (V, -(V @ np.maximum(W @ x + b, 0)))])
        known = relax(net, x[None], x[None])
        (exact,) = net.as_fractions()(list(x))
        upper, lower = known.upper_bounds([[1.0], [-1.0]])[0]
        assert -Fraction(lower) <= exact <= Fraction(upper)


def test_interval_images_hold_where_everything_cancels():
    rng = np.random.default_rng(10)
    net = ReluNetwork.from_layers([(rng.normal(size=(30, 4)), np.zeros(30))])
    x = rng.normal(size=4)
    b = -net(x)
    net = ReluNetwork.from_layers([(net.layers[0].weight, b)])
    found = interval_image(net.layers[0], x[None], x[None])
    check_contains_exact(net, Box(x, x), [Interval(found.lower[0], found.upper[0])], [x])
    tiny = ReluNetwork.from_layers([([[2.0**-600], [-(2.0**-600)]], [0, 0])])
    box = Box([1.5 * 2.0**-474], [1.5 * 2.0**-474])
    found = interval_image(tiny.layers[0], box.lower[None], box.upper[None])
    check_contains_exact(tiny, box, [Interval(found.lower[0], found.upper[0])], [box.lower])


def test_reach_bounds_what_every_layer_takes():
    rng = np.random.default_rng(11)
    net = random_net((3, 6, 6, 2), rng)
    lower = np.array([[-4.0, -1.0, 2.0]])
    known = relax(net, lower, lower + 3)
    X = Box(lower[0], lower[0] + 3).sample(2000, rng)
    taken = [X, *(np.maximum(z, 0) for z in net.trace(X)[:-1])]
    for reach, a in zip(known.reach, taken, strict=True):
        assert np.all(np.abs(a) <= reach[0])
    assert known.reach[0].tolist() == [[4, 2, 5]]


@pytest.mark.parametrize("size", [1e155, 1e300])
def test_numbers_beyond_float64_give_infinite_bounds_quietly(size):
    net = ReluNetwork.from_layers(
        [
            (np.full((3, 2), size), np.zeros(3)),
            (np.full((3, 3), size), np.zeros(3)),
            (np.ones((1, 3)), [0]),
        ]
    )
    found = linear_bounds(net, Box.cube(2, -1, 1))
    assert found[-1].upper == np.inf or found[-1].upper >= 1e300
    assert not any(np.isnan(end).any() for z in found for end in z)


def test_one_affine_layer_is_its_interval():
    net = ReluNetwork.from_layers([([[1.0, -2.0]], [3.0])])
    low, high = linear_bounds(net, Box([0, 0], [1, 1]))[0]
    assert (low.round(9).item(), high.round(9).item()) == (1.0, 4.0)


def test_bad_input():
    net = ReluNetwork.from_layers([([[1.0, -2.0]], [3.0])])
    with pytest.raises(ValueError, match="dimensions"):
        linear_bounds(net, Box([0], [1]))
    with pytest.raises(ValueError, match="outputs must have shape"):
        linear_bounds(net, Box([0, 0], [1, 1]), outputs=[1.0])


def test_after_the_deadline_bounds_are_looser_and_hold():
    rng = np.random.default_rng(7)
    net, box = random_net((4, 12, 12, 12, 2), rng), Box.cube(4, -1, 1)
    late, good = linear_bounds(net, box, deadline=Deadline.after(0.0)), linear_bounds(net, box)
    values = net(box.sample(5000, rng))
    assert np.all((values >= late[-1].lower) & (values <= late[-1].upper))
    assert np.max(late[-1].upper - late[-1].lower) > np.max(good[-1].upper - good[-1].lower)
