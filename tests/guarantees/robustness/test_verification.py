"""Properties on boxes: proved, refuted, or honestly not decided."""

import numpy as np
import pytest

import pindown as pn
from pindown import ReluNetwork
from pindown.geometry.box import Box
from pindown.guarantees import verify
from pindown.guarantees.robustness import acas_xu_property
from tests.guarantees.robustness.nets import SHARED, random_network

# As the verification literature has it: only the second network violates property 2.
KNOWN = {
    ("1_1", 1): "holds", ("1_1", 2): "holds", ("1_1", 3): "holds", ("1_1", 4): "holds",
    ("1_2", 1): "holds", ("1_2", 2): "violated", ("1_2", 3): "holds", ("1_2", 4): "holds",
}  # fmt: skip


def acas(name):
    path = SHARED / f"models/acasxu_{name}.onnx"
    if not path.exists():
        pytest.skip("the shared models are not here")
    return pn.load(path)


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
