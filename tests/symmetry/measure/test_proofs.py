"""Proved invariance: symmetric by construction is proved, not symmetric refuted, and none is wrong."""

import numpy as np
import pytest

from pindown import Model, ReluNetwork
from pindown.box import Box
from pindown.model.from_network import model_of_network
from pindown.symmetry import cyclic, dihedral, prove_invariance, symmetric
from pindown.symmetry.actions import (
    contrast_changes,
    gamma_changes,
    image_reflection,
    image_translations,
)
from pindown.symmetry.families import Transformations, Window
from pindown.symmetry.measure.proofs import _affine_map

GROUPS = {
    "C3": lambda: cyclic(3).permuting(),
    "C4": lambda: cyclic(4).permuting(),
    "S3": lambda: symmetric(3).permuting(),
    "D4": lambda: dihedral(4).permuting(),
    "mirror": image_reflection,
}


def averaged(rng, group, d, shape=None, units=2):
    """A network that adds up a random one over a group: invariant whatever its weights."""
    act = group.act
    W, b, v = rng.standard_normal((units, d)), rng.standard_normal(units), rng.standard_normal(units)
    rows = []
    for g in range(group.order):
        image = act(g, np.eye(d) if shape is None else np.eye(d).reshape(d, *shape)).reshape(d, d)
        rows.append(W @ image.T)
    weight = np.concatenate(rows)
    last = np.tile(v, group.order)[None]
    net = ReluNetwork.from_layers([(weight, np.tile(b, group.order)), (last, [0.3])])
    return net if shape is None else ReluNetwork(net.layers, shape)


def disturbed(rng, net, size):
    (W, b), *rest = net.layers
    W = np.array(W)
    W[0, 0] += size
    return ReluNetwork.from_layers([(W, b), *rest], input_shape=net.input_shape)


def change(net, group, x, label):
    g = group.elements.index(label)
    shape = net.input_shape if len(net.input_shape) > 1 and group.action is not None else (len(x),)
    return np.abs(net(group.act(g, x.reshape(1, *shape)).reshape(1, -1)) - net(x[None])).max()


@pytest.mark.parametrize("name", GROUPS)
def test_symmetric_networks_are_proved_and_others_refuted(name):
    """Four networks of each kind for five groups: 20 and 20."""
    rng, group = np.random.default_rng(len(name)), GROUPS[name]()
    shape = (2, 3) if name == "mirror" else None
    d = 6 if shape else group.degree
    for seed in range(4):
        net = averaged(rng, group, d, shape)
        box = (-np.ones(d), np.ones(d))
        held = prove_invariance(net, group, box=box, budget=10.0, seed=seed)
        assert held.verdict == "proved" and held.gap_lower <= held.gap_upper <= 1e-5 + 1e-5 * 50
        other = disturbed(rng, net, 0.1 * (seed + 1))
        found = prove_invariance(other, group, box=box, budget=10.0, seed=seed)
        assert found.verdict == "refuted" and np.abs(found.witness).max() <= 1
        assert change(other, group, found.witness, found.element) >= found.gap_lower * (1 - 1e-9) > 1e-5


def test_rounded_weights_stay_within_the_tolerance_that_is_asked_for():
    rng, group = np.random.default_rng(0), cyclic(3).permuting()
    net = disturbed(rng, averaged(rng, group, 3), 1e-4)
    loose = prove_invariance(net, group, box=(-1, 1), tol=1e-2, budget=10.0)
    tight = prove_invariance(net, group, box=(-1, 1), tol=1e-7, rtol=0.0, budget=10.0)
    assert (loose.verdict, tight.verdict) == ("proved", "refuted")
    assert 0 < tight.gap_lower <= 1e-3


def test_only_inputs_whose_image_is_in_the_box_count():
    """x1 - x2 is not symmetric; where x1 in [0, 1] and x2 in [1, 2], a swap leaves x1 = x2 = 1 alone."""
    swap = symmetric(2).permuting()
    net = ReluNetwork.from_layers([([[1.0, -1.0]], [0.0])])
    apart = prove_invariance(net, swap, box=([0.0, 1.0], [1.0, 2.0]))
    assert apart.verdict == "proved" and apart.gap_upper <= 1e-5
    assert prove_invariance(net, swap, box=([0.0, 2.0], [1.0, 3.0])).verdict == "proved"  # none stays
    wide = prove_invariance(net, swap, box=([0.0, 0.5], [1.0, 2.0]))
    assert wide.verdict == "refuted" and wide.gap_lower <= 1.0 <= wide.gap_upper * (1 + 1e-9)
    assert ((wide.witness >= 0.5) & (wide.witness <= 1.0)).all()


def test_brightness():
    """A network of differences does not see what is added to all inputs."""
    rng = np.random.default_rng(1)
    W = rng.standard_normal((5, 4))
    W -= W.mean(axis=1, keepdims=True)
    lamp = contrast_changes((1.0,), (0.0, 0.25))
    steps = (lamp.elements, [lamp.act(i, np.zeros((1, 2, 2)))[0, 0, 0] for i in range(lamp.order)])
    assert max(steps[1]) == 0.25
    for rows, verdict in ((W, "proved"), (W + 0.1, "refuted")):
        net = ReluNetwork.from_layers(
            [(rows, rng.standard_normal(5)), (np.ones((1, 5)), [0.0])], input_shape=(2, 2)
        )
        found = prove_invariance(net, lamp, box=(0, 1), budget=10.0)
        assert found.verdict == verdict
        if verdict == "refuted":
            assert (found.witness + 0.25 <= 1 + 1e-9).all()


def test_rows_and_balls_around_them():
    rng, group = np.random.default_rng(2), cyclic(4).permuting()
    net, X = averaged(rng, group, 4), rng.standard_normal((6, 4))
    held = prove_invariance(net, group, data=X, radius=0.1, budget=20.0)
    assert held.verdict == "proved" and "within 0.1 of the 6 rows" in str(held)
    around = prove_invariance(disturbed(rng, net, 0.5), group, data=X, radius=0.1, budget=10.0)
    assert around.verdict == "refuted"
    assert np.abs(around.witness - X).max(axis=1).min() <= 0.1 * (1 + 1e-9)
    broken = prove_invariance(disturbed(rng, net, 0.5), group, data=X, budget=10.0)
    assert broken.verdict == "refuted" and any(np.array_equal(broken.witness, x) for x in X)


def test_shifts_of_a_circular_convolution():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    parts = [torch.nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), torch.nn.ReLU()]
    pooled = torch.nn.Sequential(
        *parts, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(2, 2)
    )
    flat = torch.nn.Sequential(*parts, torch.nn.Flatten(), torch.nn.Linear(2 * 16, 2))
    shifts = image_translations(4, 4)
    few = Window.of(shifts, [1, 4])  # one step to the right, one down
    held = prove_invariance(Model.from_torch(pooled, (1, 4, 4)), few, box=(0, 1), budget=30.0)
    assert held.verdict == "proved" and held.gap_lower < 1e-5
    found = prove_invariance(Model.from_torch(flat, (1, 4, 4)), shifts, box=(0, 1), budget=10.0)
    assert (
        found.verdict == "refuted" and np.isinf(found.gap_upper) and "changes the answer" in str(found)
    )


def test_what_is_no_affine_family_is_refused():
    net = ReluNetwork.from_layers([(np.ones((1, 4)), [0.0])], input_shape=(2, 2))
    with pytest.raises(ValueError, match="acts on numbers from 0"):
        prove_invariance(net, gamma_changes((2.0,)), box=(0, 1))
    with pytest.raises(ValueError, match="does not act"):
        prove_invariance(net, cyclic(3).permuting(), box=(0, 1))
    with pytest.raises(TypeError, match="such as cyclic"):
        prove_invariance(net, 3, box=(0, 1))
    squares = Transformations("squares", ("s",), (lambda X: X**2,))
    with pytest.raises(ValueError, match="not affine"):
        prove_invariance(net, squares)


def test_no_time_is_open():
    rng = np.random.default_rng(3)
    group = dihedral(4).permuting()
    net = ReluNetwork.from_layers(
        [(rng.standard_normal((30, 4)), rng.standard_normal(30)), (rng.standard_normal((2, 30)), [0, 0])]
    )
    found = prove_invariance(net, group, box=(-1, 1), budget=0.0)
    assert found.verdict in ("open", "refuted") and found.gap_lower <= found.gap_upper


def test_what_is_not_closed_around_rows_is_open():
    """Without time, balls around rows have a gap that is not found and not excluded."""
    rng, group = np.random.default_rng(4), cyclic(4).permuting()
    net = averaged(rng, group, 4, units=6)
    found = prove_invariance(net, group, data=rng.standard_normal((3, 4)), radius=2.0, budget=0.0)
    assert found.verdict == "open" and found.gap_lower < 1e-9 < found.gap_upper


def test_common_part_holds_exactly_the_inputs_whose_image_stays():
    rng, group = np.random.default_rng(5), cyclic(3).permuting()
    model = model_of_network(ReluNetwork.from_layers([(np.eye(3), np.zeros(3))]))
    box = Box([0.0, 0.2, 0.4], [1.0, 1.5, 2.0])
    linear = _affine_map(group, 1, model)
    X = rng.uniform(box.lower, box.upper, (500, 3))
    stays = box.contains(group.act(1, X))
    np.testing.assert_array_equal(linear.common_part(box).contains(X), stays)
    np.testing.assert_array_equal([linear.stays(box, x) for x in X], stays)
    assert 50 < stays.sum() < 450
