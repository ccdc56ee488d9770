"""Networks written by their kinks: the same function, and one form for all who carry the same kinks."""

from __future__ import annotations

import numpy as np
import pytest

from pindown import Box, ReluNetwork
from pindown.deadline import NEVER
from pindown.equivalence.comparison import diff
from pindown.equivalence.comparison.matching import match
from pindown.equivalence.shrinking import shrink, shrink_and_settle
from pindown.equivalence.shrinking._proposals import Draft
from pindown.equivalence.shrinking._rounding_cleanup import move_off_zero
from pindown.equivalence.weight_symmetry import apply, random_symmetry
from pindown.model.operations.operation import Interval
from tests.equivalence.shrinking.redundancy import dyadic_points, random_net, redundant


def settled(net, box, tol=0.0):
    return shrink_and_settle(net, box=box, tol=tol, budget=20)[1]()


def kinked_between(carriers, reads, bias):
    """Return relu(x + y) + relu(x - 2y - 1) + x - y on [-1, 1]^2, x - y by the carriers given."""
    inner = np.array([[1.0, 1.0], [1.0, -2.0], *carriers])
    first = inner, np.array([0.0, -1.0, *bias])
    total = np.asarray(reads) @ np.array(carriers)
    assert total.tolist() == [1.0, -1.0]  # the linear part is x - y
    # A second layer with a kink of its own, relu(all of that), and a copy of it without the kink.
    row = np.array([1.0, 1.0, *reads])
    offset = -float(np.dot(reads, bias))
    second = np.vstack([row, -row]), np.array([offset, 1.0 - offset])
    return ReluNetwork.from_layers([first, second, ([[1.0, 0.5]], [0.0])])


def test_it_does_not_matter_which_units_carry_a_linear_part():
    box = Box.cube(2, -1, 1)
    one = kinked_between([[1.0, -1.0]], [1.0], [4.0])
    two = kinked_between([[1.0, 0.0], [0.0, -1.0]], [1.0, 1.0], [8.0, 2.0])
    three = kinked_between([[1.0, 1.0], [0.0, 2.0], [-1.0, 1.0]], [1.0, -1.0, 0.0], [4.0, 4.0, 4.0])
    X = box.sample(200, np.random.default_rng(0))
    np.testing.assert_allclose(one(X), two(X), atol=1e-12)
    np.testing.assert_allclose(one(X), three(X), atol=1e-12)
    forms = [settled(net, box).network for net in (one, two, three)]
    for other in forms[1:]:
        assert match(forms[0], other).matched


def test_turned_kinks_become_alike():
    box = Box.cube(1, -1, 1)
    # relu(x) + relu(relu(x) - 1/2), and the same with relu(x) = relu(-x) + x, x by an always-on unit.
    one = ReluNetwork.from_layers(
        [([[1.0]], [0]), ([[1.0], [1.0]], [0, -0.5]), ([[1.0, 1.0]], [0])],
    )
    two = ReluNetwork.from_layers(
        [([[-1.0], [1.0]], [0, 2]), ([[1.0, 1.0], [1.0, 1.0]], [-2, -2.5]), ([[1.0, 1.0]], [0])],
    )
    forms = [settled(net, box).network for net in (one, two)]
    assert forms[0].widths == forms[1].widths and match(*forms).matched
    assert diff(one, two, box=box, tol=0.0).verdict == "same"


@pytest.mark.parametrize("seed", range(8))
def test_the_settled_network_is_within_its_proved_gap(seed):
    rng = np.random.default_rng(seed)
    plain = random_net(rng, [3, 4, 4, 3, 2], integers=seed % 2 == 0)
    net = redundant(plain, rng, ["always_on", "always_on", "opposite_pair"])
    if seed >= 2:
        net = apply(random_symmetry(net, seed=rng), net)
    for box in (Box.cube(3, -1, 1), None):
        result = settled(net, box, tol=1e-6)
        f, g = net.as_fractions(), result.network.as_fractions()
        for x in dyadic_points(rng, 5, 3, -1.0, 1.0):
            gap = max(abs(p - q) for p, q in zip(f(x.tolist()), g(x.tolist()), strict=True))
            size = 1.0 if box is not None else 1.0 + float(np.linalg.norm(x))
            assert gap <= result.gap_upper * size


def test_without_always_on_units_nothing_is_rewritten_everywhere():
    net = random_net(np.random.default_rng(0), [3, 5, 4, 2])
    assert settled(net, None).network == shrink(net).network


def test_dead_up_to_rounding_is_dead_with_a_tolerance():
    # relu(t (x + y - 2)) is 0 on [-1, 1]^2, but 0.1 and 0.2 are rounded up: 0.1 + 0.2 > 0.3.
    net = ReluNetwork.from_layers(
        [([[0.1, 0.2], [1.0, 0.0]], [-0.3, 0]), ([[1.0, 1.0], [1.0, -1.0]], [0, 1]), ([[1.0, 1.0]], [0])]
    )
    box = Box.cube(2, -1, 1)
    assert net.preactivations(np.ones((1, 2)))[0, 0] > 0.0
    exact, nearly = shrink(net, box=box), shrink(net, box=box, tol=1e-9)
    assert exact.network.widths[1] == 2 and nearly.network.size < exact.network.size
    assert 0.0 < nearly.gap_upper <= 1e-9
    X = np.vstack([box.sample(500, np.random.default_rng(0)), np.ones((1, 2))])
    assert np.abs(nearly.network(X) - net(X)).max() <= nearly.gap_upper + 1e-15


def test_an_output_that_is_zero_up_to_rounding_pairs():
    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((4, 2)), rng.standard_normal(4)),
        (rng.standard_normal((2, 4)), [0, 0]),
    ]
    layers[1][0][1] = 0.0
    net = ReluNetwork.from_layers(layers)
    other = ReluNetwork.from_layers([layers[0], (layers[1][0], [0.0, 1e-17])])
    assert match(net, other).matched
    far = ReluNetwork.from_layers([layers[0], (layers[1][0], [0.0, 1.0])])
    assert not match(net, far).matched


def test_a_dead_hidden_unit_does_not_pair_with_a_faint_one():
    # The faint row is multiplied by a large weight above it, so the functions are far apart.
    layers = [([[1.0], [0.0]], [0.0, 0.0]), ([[1.0, 1e9]], [0.0])]
    other = [([[1.0], [1e-8]], [0.0, 0.0]), ([[1.0, 1e9]], [0.0])]
    one, two = (ReluNetwork.from_layers(net) for net in (layers, other))
    assert not match(one, two).matched and not match(two, one).matched
    assert diff(one, two, box=Box.cube(1, -1, 1), tol=1e-6, budget=5).verdict == "different"


def test_a_bias_too_large_to_be_moved_stays():
    # The unit misses zero by less than the last digit of its bias: nothing to do, and no endless steps.
    net = random_net(np.random.default_rng(0), [2, 3, 1])
    draft = Draft(net, Box.cube(2, -1, 1), 1e-3, NEVER, 1.0)
    bias = np.abs(net.layers[0].bias)
    low, high = -1e-19 * bias, np.full(3, 8.0)
    draft.bounds = lambda layer: Interval(low, high)
    assert not move_off_zero(draft, 0) and not draft.steps


def test_signs_seen_only_by_kinks_are_charged():
    # relu(-x / 3) + x / 3 is relu(x / 3), but for the rounding of a third carried by x + 2.
    third = 1 / 3
    net = ReluNetwork.from_layers(
        [
            ([[-1.0], [1.0]], [0, 2]),
            ([[third, third], [1.0, -1.0]], [-2 * third, 1.5]),
            ([[1.0, 1.0], [1.0, -2.0]], [0, 0.25]),
            ([[1.0, 1.0]], [0]),
        ]
    )
    result = settled(net, Box.cube(1, -1, 1))
    f, g = net.as_fractions(), result.network.as_fractions()
    for x in np.arange(-64, 65) / 64:
        assert abs(f([x])[0] - g([x])[0]) <= result.gap_upper
    assert result.gap_upper < 1e-14
