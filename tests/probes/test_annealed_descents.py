"""Long steps that shrink, radii that follow, corners of targets."""

import numpy as np
import pytest
from benchmarks.attacks import target_problem

from pindown import ReluNetwork
from pindown.deadline import NEVER
from pindown.model.from_network import model_of_network
from pindown.probes import attack
from pindown.relaxation.lp_balls import NORMS, Balls, lengths
from pindown.verification import annealed_descents as module
from pindown.verification import minimum_distance
from pindown.verification.annealed_descents import HARD, Pass, annealed_descents, annealed_step
from pindown.verification.classes import classifier
from pindown.verification.counterexamples import asked_of


def descended(net, X, radius, norm="linf", passes=1, steps=20):
    model = classifier(model_of_network(net))
    asked = asked_of(model, X, None, None, None)
    balls = Balls.around(asked.rows, np.full(len(X), radius), norm)
    rng = np.random.default_rng(0)
    return annealed_descents(model, asked, balls, passes=passes, steps=steps, rng=rng, deadline=NEVER)


def test_steps_shrink_from_the_radius_along_a_cosine():
    steps = [annealed_step(k, 10) for k in range(10)]
    assert steps[0] == 1.0 and steps == sorted(steps, reverse=True) and 0 < steps[-1] < 0.05


@pytest.mark.parametrize("norm", NORMS)
def test_wide_passes_lead_outside_and_come_back(norm, monkeypatch):
    """Down a plane that is too far away: out of the ball, then back to where it is lowest inside."""
    seen, gradients = [], module.gradients

    def watched(model, points, forms):
        seen.append(lengths(points, norm)[0])
        return gradients(model, points, forms)

    monkeypatch.setattr(module, "gradients", watched)
    monkeypatch.setattr(module, "FIRST_PASSES", (Pass(False, HARD, True),))
    net = ReluNetwork.from_layers([(np.eye(2), [50.0, 50.0]), ([[1.0, 2.0]], [-170.0])])
    found = descended(net, np.zeros((1, 2)), 1.0, norm)
    assert max(seen) > 1.3 and max(seen[11:]) <= 1 + 1e-6 and len(seen) == 20
    assert lengths(found.points, norm)[0] <= 1 + 1e-12
    assert found.margin[0] == pytest.approx(-net(found.points)[0, 0], rel=1e-5)
    assert found.margin[0] == pytest.approx(20 - {"l1": 2, "l2": 5**0.5, "linf": 3}[norm], abs=0.02)


@pytest.mark.parametrize("norm", NORMS)
def test_descents_and_radii_that_follow_find_the_boundary_of_a_plane(norm):
    """From the origin to x_1 + 2 x_2 = 2, behind rectifiers that are always on."""
    far = 50.0
    net = ReluNetwork.from_layers([(np.eye(2), [far, far]), ([[1.0, 2.0]], [-2.0 - 3 * far])])
    exact = {"l1": 1.0, "l2": 2 / 5**0.5, "linf": 2 / 3}[norm]
    X = np.zeros((1, 2))
    assert descended(net, X, 1.02 * exact, norm).reached.all()
    below = descended(net, X, 0.98 * exact, norm)
    assert not below.reached.any() and (lengths(below.points, norm) <= 0.98 * exact * (1 + 1e-12)).all()
    assert below.margin[0] == pytest.approx(0.04, abs=0.02)
    followed = attack(net, X, norm=norm, method="fmn")
    assert followed.distance[0] == pytest.approx(exact, rel=0.03)
    assert "minimum norm" in followed.by[0]


def test_soft_forms_are_the_gradient_of_the_cross_entropy():
    made = np.array([[1.0, 2.0, 0.5]])
    net = ReluNetwork.from_layers([(np.eye(3), np.zeros(3))])
    for target, sign in ((None, 1.0), (2, -1.0)):
        asked = asked_of(model_of_network(net), made, [1], target, None)
        own = 1 if target is None else target
        share = np.exp(made[0]) / np.exp(made[0]).sum()
        expected = sign * (np.eye(3)[own] - share) / (1 - share[own])
        np.testing.assert_allclose(asked.soft_forms(made, slice(None))[0], expected)


def test_corners_of_a_target_are_found():
    """The target is where x_1 >= 1 + 9 |x_2 - 0.3|, x at the origin: its corner (1, 0.3) is nearest."""
    far, W = 50.0, np.array([[-1.0, 9.0], [-1.0, -9.0], [0.0, 0.0]])
    b = np.array([1.0 - 2.7, 1.0 + 2.7, 0.0])
    net = ReluNetwork.from_layers([(np.eye(2), [far, far]), (W, b - far * W.sum(axis=1))])
    found = attack(net, np.zeros((1, 2)), norm="linf", target=2, box=(-5, 5))
    assert net(found.X[0]).argmax() == 2
    assert 1 - 1e-9 <= found.distance[0] <= 1.001


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_targets_are_reached_near_their_exact_distances(norm):
    """Of 50 networks; all that exist, within a twentieth."""
    ratios = []
    for seed in range(50):
        net, x, target, score = target_problem(seed)
        exact = minimum_distance(score, x, norm, method="cells", box=(x - 5, x + 5))
        found = attack(net, x, norm=norm, target=target, box=(x - 5, x + 5))
        assert found.success[0] == np.isfinite(exact.upper)
        if found.success[0]:
            ratios.append(found.distance[0] / exact.lower)
    assert len(ratios) > 40 and min(ratios) >= 1 - 1e-9
    assert max(ratios) <= 1.05
