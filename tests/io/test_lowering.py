"""Clip, Max and Min as ReLUs: equal in rational arithmetic whatever the sizes, and right in float64."""

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork, diff
from tests.io.onnx_models import exact, make_model, one_op


def _sizes(rng, n):
    """Numbers of both signs from the smallest float32 to the largest, some of them 0 or equal to 1."""
    sizes = 10.0 ** rng.uniform(-44, 38, n) * rng.choice([-1.0, 1.0], n)
    return np.where(rng.integers(4, size=n) == 0, rng.choice([0.0, 1.0, -1.0], n), sizes).astype("f4")


def _close(ours, truth, *scales):
    """Return whether two rationals agree to 2**-19 of each of the numbers that may be rounded."""
    return abs(ours - truth) <= Fraction(2) ** -19 * max(abs(Fraction(float(s))) for s in scales)


@pytest.mark.parametrize("seed", range(40))
def test_clip_is_exact_whatever_the_sizes(seed):
    rng = np.random.default_rng(seed)
    w, c, *bounds = _sizes(rng, 4)
    low, high = sorted(bounds)
    nodes = [
        ("Mul", ["x", "w"], ["m"], {}),
        ("Add", ["m", "c"], ["h"], {}),
        ("Clip", ["h", "low", "high"], ["y"], {}),
    ]
    net = exact(make_model(nodes, {"w": w, "c": c, "low": low, "high": high}, ["n", 1]))
    w, c, low, high = (Fraction(float(v)) for v in (w, c, low, high))
    for x in (Fraction(0), Fraction(1, 3), Fraction(-7), Fraction(10) ** 20):
        truth = min(max(w * x + c, low), high)
        assert _close(net.as_fractions()([x])[0], truth, truth), (w, c, low, high, x)


@pytest.mark.parametrize("op, pick", [("Max", max), ("Min", min)])
@pytest.mark.parametrize("seed", range(30))
def test_max_and_min_are_exact_whatever_the_sizes(op, pick, seed):
    rng = np.random.default_rng(seed)
    A, B = (_sizes(rng, 2).astype("f8").reshape(2, 1) for _ in range(2))
    a, b = _sizes(rng, 2)
    nodes = [
        ("Gemm", ["x", "A", "a"], ["g"], {}),
        ("Gemm", ["x", "B", "b"], ["h"], {}),
        (op, ["g", "h"], ["y"], {}),
    ]
    weights = {"A": A.astype("f4"), "B": B.astype("f4"), "a": a, "b": b}
    net = exact(make_model(nodes, weights, ["n", 2])).as_fractions()
    for x in ([0, 0], [1, 0], [0, -1], [Fraction(1, 3), Fraction(-5, 7)]):
        sums = [
            sum(Fraction(float(w)) * v for w, v in zip(W[:, 0], x, strict=True)) + Fraction(float(c))
            for W, c in ((A, a), (B, b))
        ]
        truth = pick(sums)
        parts = [Fraction(float(w)) * v for w, v in zip((*A[:, 0], *B[:, 0]), (*x, *x), strict=True)]
        chosen = 0 if truth == sums[0] else 1
        scales = (*parts[2 * chosen : 2 * chosen + 2], (a, b)[chosen])
        assert _close(net(x)[0], truth, *scales), (A, B, a, b, x)


@pytest.mark.parametrize("shift, value", [(1e16, 6), (1e17, 6), (3e38, 6), (-1e17, 0)])
def test_a_large_constant_before_a_clip_is_not_lost(shift, value):
    nodes = [("Add", ["x", "c"], ["h"], {}), ("Clip", ["h", "low", "high"], ["y"], {})]
    weights = {"c": np.float32(shift), "low": np.float32(0), "high": np.float32(6)}
    net = exact(make_model(nodes, weights, ["n", 1]))
    assert (net([[-1.0], [0.3], [1.0]]) == value).all()
    zero = ReluNetwork.from_layers([([[0.0]], [0.0])])
    assert diff(net, zero, box=([-1.0], [1.0])).verdict == ("different" if value else "same")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("op, far", [("Max", -1e12), ("Min", 1e12)])
def test_the_order_of_operands_does_not_decide(op, far, swapped):
    nodes = [("Add", ["x", "c"], ["h"], {}), (op, ["x", "h"] if swapped else ["h", "x"], ["y"], {})]
    # In one row the first operand is the far one, in the other the second.
    net = exact(make_model(nodes, {"c": np.float32([far, -far])}, ["n", 2]))
    assert net([0.3, 0.3])[0] == 0.3
    assert net([0.3, 0.3])[1] == 0.3 - float(np.float32(far))


def test_a_large_input_is_clipped_to_the_bound_itself():
    net = exact(one_op("Clip", ["n", 1], {"low": np.float32(-1), "high": np.float32(6)}))
    assert net([[1e30], [-1e30], [1e300], [0.5]]).ravel().tolist() == [6, -1, 6, 0.5]
    assert net.widths == (1, 1, 1, 1)
