"""Properties on boxes: proved, refuted, or honestly not decided."""

from fractions import Fraction

import numpy as np
import pytest

import pindown as pn
from pindown import ReluNetwork
from pindown.box import Box
from pindown.guarantees import verify
from pindown.verification import acas_xu_property
from tests.verification.nets import SHARED, random_network

# As the verification literature has it: only the second network violates property 2.
KNOWN = {
    ("1_1", 1): "holds", ("1_1", 2): "holds", ("1_1", 3): "holds", ("1_1", 4): "holds",
    ("1_2", 1): "holds", ("1_2", 2): "violated", ("1_2", 3): "holds", ("1_2", 4): "holds",
}  # fmt: skip


def acas(name):
    path = SHARED / f"models/acasxu_{name}.onnx"
    if not path.exists():
        pytest.skip("the shared models are not here")
    return pn.load(path).relu_network()


def test_answers_agree_with_a_fine_grid():
    rng = np.random.default_rng(0)
    seen = set()
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 201)] * 2), axis=-1).reshape(-1, 2)
    for _ in range(12):
        net = random_network(rng, [2, 8, 8, 3])
        rows = rng.standard_normal((2, 3))
        worst = (net(grid) @ rows.T).max(axis=1).min()
        for limit, expected in ((worst + 0.01, "violated"), (worst - 0.15, "holds")):
            found = verify(net, (-1, 1), rows, [limit, limit])
            seen.add(found.verdict)
            assert found.verdict == expected
            if found.witness is not None:
                assert (rows @ net(found.witness) <= limit).all()
                assert Box([-1, -1], [1, 1]).contains(found.witness)
    assert seen == {"holds", "violated"}


@pytest.mark.parametrize("place", [-0.912, -0.3, 0.2501, 0.907])
def test_a_spike_that_samples_miss_is_found_wherever_it_is(place):
    """A tent of height one and width 2e-6: 4,096 points miss it, halving the box does not."""
    width = 1e-6
    tent = ReluNetwork.from_layers(
        [
            (np.ones((3, 1)), [width - place, -place, -width - place]),
            (np.array([[1.0, -2.0, 1.0]]) / width, [0.0]),
        ]
    )
    found = verify(tent, (-1, 1), [[-1.0]], [-0.5], budget=120.0)
    assert found.verdict == "violated" and abs(found.witness[0] - place) < width
    assert verify(tent, (-1, 1), [[-1.0]], [-1.1], budget=120.0).verdict == "holds"


def test_no_time_is_undecided():
    rng = np.random.default_rng(1)
    net = random_network(rng, [4, 30, 30, 1])
    found = verify(net, (-1, 1), [[1.0]], [float(net(np.zeros((1, 4)))[0, 0]) - 100.0], budget=0.0)
    assert found.verdict == "undecided" and found.witness is None and found.kind == "exact"
    assert "undecided" in repr(found)


def test_a_limit_that_is_attained_is_a_violation():
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    found = verify(net, (-1, 1), [[1.0]], [0.0])
    assert found.verdict == "violated" and found.witness[0] == 0.0


@pytest.mark.parametrize(
    ("rows", "limits", "message"),
    [
        ([[1.0, 2.0]], [0.0], "shape"),
        ([[1.0]], [0.0, 1.0], "shape"),
        ([[np.nan]], [0.0], "finite"),
        (np.zeros((0, 1)), [], "at least one"),
    ],
)
def test_bad_properties_are_refused(rows, limits, message):
    net = ReluNetwork.from_layers([([[1.0]], [0])])
    with pytest.raises(ValueError, match=message):
        verify(net, (-1, 1), rows, limits)
    with pytest.raises(ValueError, match="number must be"):
        acas_xu_property(5)


def test_acas_boxes_are_those_of_the_benchmark():
    """The normalised corners that competitions publish."""
    np.testing.assert_allclose(
        acas_xu_property(3).box.lower,
        [-0.30353115613746867, -0.009549296585513092, 0.4933803235848431, 0.3, 0.3],
    )
    np.testing.assert_allclose(acas_xu_property(1).limits, [-3.991125645861615])
    np.testing.assert_allclose(
        acas_xu_property(1).box.upper, [0.679857769, 0.5, 0.5, 0.5, -0.45], atol=1e-9
    )


@pytest.mark.parametrize(("name", "number"), [("1_1", 1), ("1_2", 1), ("1_2", 3), ("1_2", 4)])
def test_acas_properties_that_are_decided_quickly(name, number):
    network, goal = acas(name), acas_xu_property(number)
    found = verify(network, goal.box, goal.rows, goal.limits, budget=300.0)
    assert found.verdict == KNOWN[name, number]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), list(KNOWN))
def test_acas_properties_come_out_as_the_literature_says(name, number):
    network, goal = acas(name), acas_xu_property(number)
    found = verify(network, goal.box, goal.rows, goal.limits, budget=900.0)
    assert found.verdict == KNOWN[name, number]
    if found.witness is not None:
        scores = network(found.witness)
        assert goal.box.contains(found.witness) and (goal.rows @ scores <= goal.limits).all()


def test_a_witness_violates_in_rational_numbers():
    """f = 0.1 x at x = 3: the float64 product is 0.30000000000000004, the limit 0.3 lies below both."""
    net = ReluNetwork.from_layers([([[0.1]], [0.0])])
    at_three = ([3.0], [3.0])
    exact = 3 * Fraction(0.1)
    assert Fraction(0.3) < exact < Fraction(0.1 * 3)
    assert verify(net, at_three, [[1.0]], [0.3], budget=0.2).verdict != "violated"
    found = verify(net, at_three, [[1.0]], [0.1 * 3], budget=0.2)
    assert found.verdict == "violated" and found.margin == 0.0
    assert found.float32_margin == float(np.float32(0.1) * np.float32(3)) - 0.1 * 3
    below = verify(net, at_three, [[1.0], [-1.0]], [0.1 * 3, -0.1 * 3], budget=0.2)  # f = 0.30...04
    assert below.verdict != "violated" and below.witness is None
