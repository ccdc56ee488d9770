"""Convexity and monotonicity: against exact rationals and against sampled segments."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.facts.convexity import convexity, monotonicity
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network
from tests.geometry.partial import first_cells


def exact_curvature(net, box):
    """Signs of all bends, by rationals: a neighbour's map is above one's own inside the neighbour."""
    cells = exact_complex(net, box)
    bends = set()
    for i, j in cells.neighbours:
        inside = [sum(x) / len(x) for x in zip(*cells.vertices[j], strict=True)]
        here, there = (
            rows[0][-1] + sum(a * x for a, x in zip(rows[0], inside, strict=False))
            for rows in (cells.maps[i], cells.maps[j])
        )
        bends.add((there > here) - (there < here))
    signs = bends - {0}
    return (
        "affine"
        if not signs
        else "neither"
        if len(signs) == 2
        else ("convex" if 1 in signs else "concave")
    )


def exact_directions(net, box):
    slopes = [rows[0][:-1] for rows in exact_complex(net, box).maps]
    names = {(): "constant", (1,): "non-decreasing", (-1,): "non-increasing", (-1, 1): "neither"}
    return [
        names[tuple(sorted({(a > 0) - (a < 0) for a in column} - {0}))]
        for column in zip(*slopes, strict=True)
    ]


def variants(net, rng):
    """The network, and one with the same folds whose outputs are sums with weights of one sign."""
    *hidden, (W, b) = net.layers
    yield net
    yield ReluNetwork.from_layers([*hidden, (np.abs(W), b)])
    yield ReluNetwork.from_layers([hidden[0], (rng.random((1, len(hidden[0][1]))), [0])])  # convex
    yield ReluNetwork.from_layers([hidden[0], (-rng.random((1, len(hidden[0][1]))), [0])])  # concave


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_agrees_with_exact_arithmetic(kind, d):
    rng = np.random.default_rng(d)
    for net in variants(degenerate_network(kind, d, rng, widths=(5, 4)), rng):
        cx = polyhedral_complex(net, cube(d))
        assert convexity(cx)[0].verdict == exact_curvature(net, cube(d))
        assert monotonicity(cx).verdicts[0].tolist() == exact_directions(net, cube(d))


@pytest.mark.parametrize("seed", range(4))
def test_convex_outputs_stay_below_chords_and_bends_show_the_rest(seed):
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((8, 2)), rng.standard_normal(8) / 3
    V = np.stack([rng.random(8), -rng.random(8), rng.standard_normal(8), np.zeros(8)])
    V[2, :2] = [1, -1]
    net = ReluNetwork.from_layers([(W, b), (V, np.zeros(4))])
    convex, concave, neither, flat = convexity(net, (-3, 3))
    assert [c.verdict for c in (convex, concave, neither, flat)] == [
        "convex",
        "concave",
        "neither",
        "affine",
    ]
    x, y = rng.uniform(-3, 3, (2, 2000, 2))
    gap = (net(x) + net(y)) / 2 - net((x + y) / 2)
    assert gap[:, 0].min() > -1e-12 and gap[:, 1].max() < 1e-12 and np.abs(gap[:, 3]).max() < 1e-12
    assert convex.ridge is None and concave.valley is None and flat.valley is None
    cx = polyhedral_complex(net, (-3, 3))
    for bend in (neither.valley, neither.ridge):
        i, j = bend.cells
        across = cx.cells.vertices(j).mean(axis=0) - cx.cells.vertices(i).mean(axis=0)
        step = 1e-6 * across
        kink = net(bend.point + step) + net(bend.point - step) - 2 * net(bend.point)
        assert np.sign(kink[2]) == np.sign(bend.jump)
        assert abs(bend.jump) == pytest.approx(np.linalg.norm(cx.A[j, 2] - cx.A[i, 2]))


@pytest.mark.parametrize("seed", range(4))
def test_monotone_along_coordinates(seed):
    rng = np.random.default_rng(seed)
    W1 = np.abs(rng.standard_normal((6, 3))) * [1, -1, 1]
    W1[:, 2] *= rng.choice([-1, 1], 6)
    net = ReluNetwork.from_layers(
        [(W1, rng.standard_normal(6)), (rng.random((6, 6)), -rng.random(6)), (rng.random((1, 6)), [0])]
    )
    found = monotonicity(net, (-2, 2))
    assert found.verdicts[0, :2].tolist() == ["non-decreasing", "non-increasing"]
    x = rng.uniform(-2, 2, (2000, 3))
    for c, sign in ((0, 1), (1, -1)):
        up = x.copy()
        up[:, c] = np.minimum(x[:, c] + rng.random(2000), 2)
        assert np.min(sign * (net(up) - net(x))) >= -1e-12
    cx = polyhedral_complex(net, (-2, 2))
    assert found.falling[0, 0] == -1 and cx.A[found.rising[0, 0], 0, 0] > 0
    if found.verdicts[0, 2] == "neither":
        assert cx.A[found.rising[0, 2], 0, 2] > 0 > cx.A[found.falling[0, 2], 0, 2]


def test_rounding_is_no_bend():
    # 0.1 + 0.2 - 0.3 is not 0 in float64: the kinks of the three units cancel but for rounding.
    net = ReluNetwork.from_layers([([[1.0, 0.3]] * 3, [0, 0, 0]), ([[0.1, 0.2, -0.3]], [0])])
    assert convexity(net, (-1, 1))[0].verdict == "affine"
    assert monotonicity(net, (-1, 1)).verdicts.tolist() == [["constant", "constant"]]


def test_partial_answers_say_so():
    net = random_network(np.random.default_rng(0), 2, (10, 10))
    part = first_cells(polyhedral_complex(net, (-1, 1)), 2)
    one = convexity(part)[0]
    assert not one.exact and "on the cells found" in repr(one)
    assert "on the cells found" in repr(monotonicity(part))
    nothing = convexity(net, (-1, 1), budget=0)[0]
    assert nothing.verdict == "affine" and not nothing.exact
    assert monotonicity(net, (-1, 1), budget=0).rising.tolist() == [[-1, -1]]
    # "neither" is proved by two facets, whatever else there is.
    many = first_cells(polyhedral_complex(net, (-1, 1)), 40)
    assert convexity(many)[0].verdict == "neither" and convexity(many)[0].exact
