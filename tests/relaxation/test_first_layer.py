"""Planes above a first layer's ReLUs that are exact at corners: they hold, and beat triangles."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from pindown.affine import Affine
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.first_layer import forms_by_corners
from pindown.relaxation.linear import LinearForms, interval_image, largest, relax
from tests.equivalence.comparison.nets import random_net


def form_at(A, c, layer, x):
    """Return A relu(W x + b) + c in rationals."""
    total = Fraction(float(c))
    for coefficient, row, bias in zip(A, layer.weight, layer.bias, strict=True):
        z = Fraction(float(bias)) + sum(
            Fraction(float(w)) * Fraction(float(v)) for w, v in zip(row, x, strict=True)
        )
        total += Fraction(float(coefficient)) * max(z, Fraction(0))
    return total


def drawn(rng, d, m, q, scale):
    layer = Affine.of(rng.normal(0, scale, (m, d)), rng.normal(0, scale, m))
    lower = rng.normal(size=d)
    upper = lower + rng.random(d) * rng.choice([1e-3, 1.0, 3.0])
    z = Interval(*(end[0] for end in interval_image(layer, lower[None], upper[None])))
    return rng.normal(size=(q, m)), rng.normal(size=q), layer, z, lower, upper


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e90])
@pytest.mark.parametrize("steps", [0, 1, 12])
def test_forms_hold_in_exact_arithmetic_at_corners_and_inside(steps, scale):
    rng = np.random.default_rng(1)
    for _ in range(6):
        A, c, layer, z, lower, upper = drawn(rng, 5, 7, 3, scale)
        weight, offset = forms_by_corners(A, c, layer, z, lower, upper, steps=steps)
        mix = np.concatenate([rng.integers(0, 2, (12, 5)), rng.random((6, 5))])
        for x in np.clip(lower + mix * (upper - lower), lower, upper):
            for k in range(3):
                own = Fraction(float(offset[k])) + sum(
                    Fraction(float(w)) * Fraction(float(v)) for w, v in zip(weight[k], x, strict=True)
                )
                assert form_at(A[k], c[k], layer, x) <= own


def test_more_steps_are_never_worse_and_mostly_much_better():
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(20):
        A, c, layer, z, lower, upper = drawn(rng, 30, 12, 4, 1.0)
        ends = [
            largest(
                LinearForms(
                    *(part[None] for part in forms_by_corners(A, c, layer, z, lower, upper, steps=steps))
                ),
                lower[None],
                upper[None],
            )[0]
            for steps in (0, 1, 30)
        ]
        assert (ends[2] <= ends[1] + 1e-9).all()
        assert (ends[1] <= ends[0] + 1e-9).all()
        corners = np.where(rng.random((4000, 30)) < 0.5, lower, upper)
        found = (np.maximum(corners @ layer.weight.T + layer.bias, 0) @ A.T + c).max(axis=0)
        assert (found <= ends[2]).all()
        shares.append(np.median((ends[0] - ends[2]) / (ends[0] - found)))
    assert np.median(shares) > 0.1


def test_units_of_a_network_are_bounded_tighter_and_hold():
    rng = np.random.default_rng(3)
    net = random_net((20, 12, 12, 12, 2), rng)
    sparse = ReluNetwork.from_layers([(sp.csr_array(W), b) for W, b in net.layers])
    lower = rng.normal(size=(3, 20))
    upper = lower + 0.3
    plain, fine = relax(net, lower, upper), relax(net, lower, upper, corners=16)
    other = relax(sparse, lower, upper, corners=16)
    tighter = 0
    for i, (w, t, s) in enumerate(zip(plain.bounds, fine.bounds, other.bounds, strict=True)):
        if i == 1:  # above, slopes below ReLUs are chosen by other bounds
            assert (t.lower >= w.lower).all()
            assert (t.upper <= w.upper).all()
        assert np.allclose(s.lower, t.lower, atol=1e-9)
        tighter += int((t.upper - t.lower < 0.99 * (w.upper - w.lower)).sum())
        values = np.where(rng.random((2000, 1, 20)) < 0.5, lower, upper)
        for j, (W, b) in enumerate(net.layers[: i + 1]):
            values = (np.maximum(values, 0) if j else values) @ W.T + b
        assert (values >= t.lower - 1e-9).all()
        assert (values <= t.upper + 1e-9).all()
    assert tighter > 20


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (-2.0, np.inf)])
@pytest.mark.parametrize("size", [1.0, 1e308])
def test_what_float64_cannot_hold_is_unknown(low, high, size):
    layer = Affine.of(np.full((1, 2), size), np.zeros(1))
    z, ends = Interval(np.array([low]), np.array([high])), (-np.ones(2), np.ones(2))
    _, offset = forms_by_corners(np.ones((1, 1)), np.zeros(1), layer, z, *ends, steps=0)
    assert offset[0] == np.inf
