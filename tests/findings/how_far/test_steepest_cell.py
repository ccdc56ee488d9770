"""The Lipschitz constant on a box whose cells are known."""

import numpy as np
import pytest

from pindown import ReluNetwork, audit


def random_net(*widths, seed=0):
    rng = np.random.default_rng(seed)
    sizes = zip(widths[1:], widths[:-1], strict=True)
    return ReluNetwork.from_layers([(rng.standard_normal(s), rng.standard_normal(s[0])) for s in sizes])


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_the_constant_on_the_box_is_that_of_the_steepest_place(inputs):
    net = random_net(inputs, 6, 5, 2)
    finding = audit(net, box=(-1, 1), only=["LIP-01"])["LIP-01"]
    X = np.random.default_rng(1).uniform(-1, 1, (4000, inputs))
    sampled = max(np.linalg.norm(net.local_affine(x)[0], 2) for x in X)
    assert finding.number.value == pytest.approx(sampled, rel=1e-9)
    assert not finding.number.bound and finding.number.label.startswith("on the given box")
    assert "the steepest of" in finding.verdict and "over all inputs between" in finding.verdict
    assert "On the given box" in finding.sentence and "anywhere" in finding.sentence
    rows = {row[0]: row for row in finding.table.rows}
    upper = min(row[2] for name, row in rows.items() if name != "on the box" and row[2] is not None)
    assert rows["attained"][1] == pytest.approx(finding.number.value, rel=1e-6)
    assert finding.number.value <= upper and rows["on the box"][1:3] == (finding.number.value,) * 2


def test_a_place_that_points_miss_is_found():
    """The slope is 1,001 between 0.5 and 0.5001, and 1 elsewhere: a cell, however thin, is listed."""
    layers = [([[1.0], [1.0], [1.0], [-1.0]], [-0.5, -0.5001, 0, 0]), ([[1e3, -1e3, 1.0, -1.0]], [0])]
    finding = audit(ReluNetwork.from_layers(layers), box=(-1, 1), only=["LIP-01"])["LIP-01"]
    assert finding.number.value == pytest.approx(1001.0)
    assert finding.table.rows[0][1] == pytest.approx(1001.0, rel=1e-6)
    assert finding.table.rows[0][1] <= 1001.0 and "steepest cell" in finding.table.rows[0][3]


def test_fixed_inputs_do_not_count():
    net = random_net(3, 5, 1)
    box = (np.array([-1.0, 0.25, -1.0]), np.array([1.0, 0.25, 1.0]))
    finding = audit(net, box=box, only=["LIP-01"])["LIP-01"]
    X = np.random.default_rng(2).uniform(-1, 1, (4000, 3))
    X[:, 1] = 0.25
    slopes = [np.linalg.norm(net.local_affine(x)[0][:, [0, 2]]) for x in X]
    assert finding.number.value == pytest.approx(max(slopes), rel=1e-9)


def test_without_a_box_of_its_own_the_finding_is_about_all_inputs():
    net = random_net(2, 6, 1)
    finding = audit(net, only=["LIP-01"])["LIP-01"]
    assert finding.number.bound == "upper" and finding.verdict.startswith("between")
    many = audit(random_net(9, 6, 1), box=(-1, 1), only=["LIP-01"])["LIP-01"]
    assert many.number.bound == "upper" and many.verdict.startswith("between")
