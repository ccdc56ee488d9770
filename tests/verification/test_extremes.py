"""Claims at the ends of float64, where solvers and squares drop what is small."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.probes import linear_distance, noise_versus_adversarial
from pindown.relaxation.lp_balls import NORMS, lengths
from pindown.verification import Property, certified, certified_accuracy, minimum_distance, verify
from pindown.verification.least_distance import nearest_point
from tests.verification.nets import random_network


@pytest.mark.parametrize("scale", [1e-180, 1e-150, 1.0, 1e180])
def test_scales_of_the_weights_do_not_matter(scale):
    """Squares of such weights vanish or overflow; the distance is 1 over root 2."""
    net = ReluNetwork.from_layers([([[scale, scale]], [scale])])
    assert lengths(np.array([3.0, 4.0]) * scale, "l2") == pytest.approx(5.0 * scale)
    assert linear_distance([scale, scale], scale, [0.0, 0.0]) == pytest.approx([0.5**0.5])
    assert certified(net, [0.0, 0.0], radius=0.70, norm="l2").all()
    assert not certified(net, [0.0, 0.0], radius=0.71, norm="l2").any()
    found = minimum_distance(net, [0.0, 0.0], "l2", budget=10.0)
    assert found.lower <= 0.5**0.5 <= found.upper * (1 + 1e-15)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("eps", [1e-5, 1e-7, 1e-9])
def test_another_class_far_away_is_not_denied(norm, eps):
    """Class 1 is where 1 <= y <= eps x: its corner is 1 / eps away, in a wedge few attacks find."""
    net = ReluNetwork.from_layers(
        [([[-eps, 2.0], [0, 1], [0, -1]], [-1, 0, 0]), ([[-1.0, 1, -1]], [-1])]
    )
    assert np.argmax([0.0, net([4.0 / eps, 2.0])[0]]) == 1
    found = minimum_distance(net, [0.0, 0.0], norm, budget=1.0, method="cells")
    assert found.lower <= 1.0 / eps + 1.0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("eps", [1e-8, 1e-10])
def test_inputs_of_very_different_units(norm, eps):
    """Only x_1, in huge units, can change the class; programs take its weight for zero."""
    box = ([-1e13, 0.0], [1e13, 0.1])
    affine = ReluNetwork.from_layers([([[eps, 1.0]], [-1.0])])
    folded = ReluNetwork.from_layers([([[eps, 1.0], [1, 1]], [-1.0, 0]), ([[-1.0, 0]], [0.5])])
    for net, truth in ((affine, 0.9 / eps), (folded, 1.4 / eps)):
        for method in ("cells", "auto"):
            found = minimum_distance(net, [0.0, 0.0], norm, budget=1.0, box=box, method=method)
            assert found.lower <= (truth + 0.1) * (1 + 1e-9)


def test_nearest_point_says_when_it_cannot_tell():
    G, h = np.array([[0.0, -1.0], [-1e-9, 1.0]]), np.array([-1.0, 0.0])  # y >= 1, y <= 1e-9 x
    for norm in NORMS:
        with pytest.raises(ArithmeticError):
            nearest_point(G, h, np.zeros(2), norm)
    contradiction = np.array([[0.0, -1.0], [0.0, 1.0]])
    for norm in NORMS:
        assert nearest_point(contradiction, h, np.zeros(2), norm) is None


def test_radii_in_any_order_give_the_same_curve():
    rng = np.random.default_rng(3)
    net, X = random_network(rng, [3, 8, 3]), rng.standard_normal((40, 3))
    y = np.argmax(net(X), axis=1)
    radii = np.linspace(0.0, 1.0, 9)
    one, two = (certified_accuracy(net, X, y, radii, n_jobs=n, verbose=0) for n in (1, 2))
    np.testing.assert_array_equal(one.lower, two.lower)
    assert (np.diff(two.lower) <= 0).all() and (np.diff(two.upper) <= 0).all()


def test_budgets_and_inputs_are_checked():
    net = random_network(np.random.default_rng(0), [2, 3, 2])
    for budget in (-1.0, float("nan"), "1"):
        with pytest.raises(ValueError, match="budget"):
            verify(net, Property.box([0, 0], [1, 1], [[1.0, 0.0]], [0.0]), budget=budget)
        with pytest.raises(ValueError, match="budget"):
            certified_accuracy(net, [[0.0, 0.0]], [0], 0.1, budget=budget, verbose=0)
    with pytest.raises(TypeError, match="ReluNetwork"):
        verify(42, Property.box([0], [1], [[1.0]], [0.0]))
    with pytest.raises(ValueError, match="one input"):
        noise_versus_adversarial(ReluNetwork.from_layers([([[1.0, 1.0]], [0.0])]), np.ones((2, 2)))
    never = ReluNetwork.from_layers([([[1.0], [1.0]], [0.0, 1.0])])
    assert "neither" in str(noise_versus_adversarial(never, [2.0]))


def test_programs_search_the_box_where_no_attack_succeeds():
    """A bump of width 0.02, flat around: nothing points to it."""
    net = ReluNetwork.from_layers(
        [([[1.0], [1.0], [1.0]], [-3.0, -3.01, -3.02]), ([[100.0, -200.0, 100.0]], [-0.5])]
    )
    for box, lower, upper in (((0, 9), 3.005, 3.005), ((0, 2), np.inf, np.inf)):
        found = minimum_distance(net, [0.0], "linf", budget=20.0, box=box, method="programs")
        assert found.lower == pytest.approx(lower, rel=1e-3) and found.lower <= lower
        assert found.upper == pytest.approx(upper, rel=1e-3) and found.upper >= upper * (1 - 1e-9)


def test_slopes_beyond_float64_still_lead_to_a_counterexample():
    """The outputs fit float64 on the box, their slopes (1e350) do not."""
    net = ReluNetwork.from_layers([([[1e200]], [1e-100]), ([[1e150], [0.0]], [0.0, 1e49])])
    found = certified_accuracy(net, [[1e-300]], [0], [3e-300], box=([-1e-299], [1e-299]), verbose=0)
    assert found.upper[0] == 0.0  # class 1 from x = -9e-301 downwards
