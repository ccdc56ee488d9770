"""Attacks of foolbox beside ours: never nearer than what is proved, and a clear word without it."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.guarantees import minimum_distance
from pindown.model.from_network import model_of_network
from pindown.probes import attack, foolbox_attack
from pindown.probes.foolbox import _nearest, torch_module
from pindown.verification.classes import classifier
from pindown.verification.counterexamples import asked_of


def small(seed=0, widths=(3, 8, 8, 3)):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairwise(widths)]
    )


def test_without_foolbox_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "foolbox", None)
    with pytest.raises(ImportError, match=r"pip install .*bench.*minimum_distance"):
        foolbox_attack(small(), np.zeros((1, 3)))


@pytest.mark.parametrize(
    "norm",
    [pytest.param("l1", marks=pytest.mark.slow), "l2", pytest.param("linf", marks=pytest.mark.slow)],
)
def test_nearest_of_all_is_kept_and_is_no_nearer_than_the_exact_distance(norm):
    net, X = small(), np.random.default_rng(1).uniform(-1, 1, (6, 3))
    found = foolbox_attack(net, X, norm=norm)
    assert found.success.all() and len(found.distances) >= 2
    assert (net(found.X).argmax(axis=1) != net(X).argmax(axis=1)).all()
    np.testing.assert_array_equal(found.distance, np.min(list(found.distances.values()), axis=0))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    np.testing.assert_allclose(found.distance, np.linalg.norm(found.X - X, order, axis=1))
    for name, distance in found.distances.items():
        assert np.isfinite(distance).any(), name  # every attack finds something here
    for x, distance in zip(X, found.distance, strict=True):
        assert distance >= minimum_distance(net, x, norm, method="cells").lower * (1 - 1e-9)
    assert "nearest on" in repr(found)


class Push:
    """Stands for an attack of foolbox: adds one number to all inputs."""

    def __init__(self, amount):
        self.amount = amount

    def __call__(self, model, inputs, classes, epsilons):
        return None, inputs + self.amount, None


def test_two_attacks_of_one_kind_are_both_kept(monkeypatch):
    """The nearer one comes first, and the second does not take its place."""
    library = SimpleNamespace(PyTorchModel=lambda module, **_: module, attacks=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "foolbox", library)
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0.0, 0.0])])
    found = foolbox_attack(net, [[-0.5]], attacks=[Push(0.6), Push(5.0), Push(0.1)])
    assert list(found.distances) == ["ours", "Push", "Push 2", "Push 3"]
    assert [found.distances[name].item() for name in ("Push", "Push 2")] == [0.6, 5.0]
    assert found.distances["Push 3"].item() == np.inf
    assert found.by == ("ours",) and 0.5 <= found.distance.item() < 0.51


def test_box_modules_and_two_classes():
    rng = np.random.default_rng(2)
    net = ReluNetwork.from_layers(
        [(rng.standard_normal((6, 4)), np.zeros(6)), (np.ones((1, 6)), [-2.0])]
    )
    X = rng.uniform(0, 1, (5, 4))
    boxed = foolbox_attack(net, X, norm="linf", box=(0, 1))
    assert ((boxed.X >= 0) & (boxed.X <= 1)).all()
    assert ((net(boxed.X) > 0) != (net(X) > 0))[boxed.success].all()
    again = foolbox_attack(net.to_torch(), X, norm="linf", box=(0, 1))
    np.testing.assert_array_equal(boxed.distance, again.distance)


def test_constant_network_has_no_other_class():
    net = ReluNetwork.from_layers([(np.zeros((2, 2)), [1.0, 0.0])])
    found = foolbox_attack(net, np.zeros((1, 2)), attacks=["L2FMNAttack"])
    assert not found.success.any() and "none of 1" in repr(found) and found.by == ("",)


def test_refuses():
    for settings, words in (
        ({"norm": "l3"}, "norm"),
        ({"attacks": ["Nonsense"]}, "foolbox.attacks has no"),
        ({"box": (1, 2)}, "outside the box"),
    ):
        with pytest.raises(ValueError, match=words):
            foolbox_attack(small(), np.zeros((1, 3)), **settings)
    with pytest.raises(ValueError, match="empty"):
        foolbox_attack(small(), np.zeros((0, 3)))


def test_targets_are_reached_by_both():
    pytest.importorskip("foolbox")
    rng = np.random.default_rng(5)
    net, many = small(5, (4, 16, 3)), rng.uniform(-1, 1, (200, 4))
    there = net(many).argmax(axis=1) == 2
    X = np.concatenate([many[~there][:5], many[there][:1]])
    found = foolbox_attack(net, X, norm="l2", target=2, box=(-3, 3))
    assert set(found.distances) == {"ours", "L2FMNAttack", "DDNAttack"}
    assert found.success[:5].any() and np.isfinite(found.distances["L2FMNAttack"][:5]).any()
    assert found.success[5] and found.distance[5] == 0.0
    np.testing.assert_array_equal(net(found.X[found.success]).argmax(axis=1), 2)
    free = foolbox_attack(net, X, norm="l2", box=(-3, 3))
    other = found.success & (net(X).argmax(axis=1) != 2)
    assert (free.distance[other] <= found.distance[other] * 1.05).all()


def test_within_a_radius_what_any_finds_counts():
    pytest.importorskip("foolbox")
    net, X = small(6, (4, 16, 3)), np.random.default_rng(6).uniform(-1, 1, (8, 4))
    found = attack(net, X, norm="linf", radius=0.2, method="foolbox", box=(-1, 1))
    assert set(found.distances) == {"ours", "LinfPGD", "LInfFMNAttack"}
    assert (found.distance <= 0.2 * (1 + 1e-9)).all() and np.abs(found.X).max() <= 1
    np.testing.assert_array_equal(
        found.success, np.isfinite(np.min(list(found.distances.values()), axis=0))
    )
    np.testing.assert_array_equal(found.success, net(found.X).argmax(axis=1) != net(X).argmax(axis=1))


def test_what_lies_beyond_the_radius_does_not_count():
    """Their minimum-norm attacks know no radius: what they find counts within it alone."""
    model = classifier(model_of_network(ReluNetwork.from_layers([([[1.0]], [-1.0])])))
    asked = asked_of(model, [[0.0], [0.0]], None, None, None)
    found = {"ours": np.array([[0.0], [0.0]]), "far": np.array([[1.5], [2.5]])}
    result = _nearest(model, asked, "linf", 2.0, found)
    assert result.success.tolist() == [True, False] and result.distance.tolist() == [1.5, 0.0]


def test_any_model_goes_to_foolbox_with_its_gradients():
    torch = pytest.importorskip("torch")
    net, X = small(7, (3, 8, 2)), np.random.default_rng(7).standard_normal((4, 3))
    module, same = torch_module(model_of_network(net)), net.to_torch()
    values = []
    for m in (module, same):
        x = torch.tensor(X, requires_grad=True)
        y = m(x)
        (y**2).sum().backward()
        values.append((y.detach().numpy(), x.grad.numpy()))
    for ours, theirs in zip(*values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
