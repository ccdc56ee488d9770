"""Augmented training: an invariant loss, no gradient along orbits, and weights that stay orbits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from pindown.symmetry import cyclic, dihedral
from pindown.symmetry.actions import planar_rotations
from pindown.symmetry.augmentation import (
    box_average,
    gradient_equivariance_error,
    grid_window_multiplier,
    orbit_deviation,
    orbit_gradient_component,
    orbit_init,
    orbit_loss,
    window_multiplier,
)

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 6)), RNG.standard_normal(20)


def squares(outputs, y):
    return (outputs - y) ** 2


def loss_of(w, group, X=X, y=Y, **settings):
    return orbit_loss(lambda Z: np.tanh(Z @ w), squares, X, y, group, **settings)


@pytest.mark.parametrize("group", [cyclic(6), dihedral(6).permuting()], ids=["C6", "D6"])
def test_the_loss_of_whole_orbits_is_invariant(group):
    w = RNG.standard_normal(6)
    first = loss_of(w, group)
    for i in range(group.order):
        assert abs(loss_of(group.act(i, w), group) - first) < 1e-12
    plain = np.mean(squares(np.tanh(X @ w), Y))
    turned = np.mean(squares(np.tanh(X @ np.roll(w, 1)), Y))
    assert abs(plain - turned) > 1e-3  # without augmentation it is not


def test_random_augmentation_is_invariant_only_in_expectation():
    group, w = cyclic(6), RNG.standard_normal(6)
    exact = loss_of(w, group)
    errors = {
        k: np.sqrt(np.mean([(loss_of(w, group, n_samples=k, seed=s) - exact) ** 2 for s in range(200)]))
        for k in (4, 64)
    }
    assert errors[4] > 1e-3 and errors[4] / errors[64] == pytest.approx(4.0, rel=0.35)


def test_printed_second_line_of_the_loss_has_lost_its_mean():
    """Without 1/N the loss of a data set given twice doubles; the mean stays."""
    group, w = cyclic(6), RNG.standard_normal(6)
    once, twice = loss_of(w, group), loss_of(w, group, np.tile(X, (2, 1)), np.tile(Y, 2))

    def of_one(x, t):
        return np.mean([(np.tanh(w @ np.roll(x, k)) - t) ** 2 for k in range(6)])

    def printed(X, y):
        return sum(map(of_one, X, y))

    assert twice == pytest.approx(once)
    assert printed(np.tile(X, (2, 1)), np.tile(Y, 2)) == pytest.approx(2 * printed(X, Y))
    assert printed(X, Y) / len(X) == pytest.approx(once)


def test_modules_and_tensors_get_gradients():
    module = torch.nn.Linear(6, 1).double()
    value = orbit_loss(module, lambda out, y: squares(out[:, 0], y), X, torch.tensor(Y), cyclic(6))
    value.backward()
    # All shifts of the data are seen alike: the gradient of the weights is constant up to the w term.
    by_hand = np.mean(
        [
            np.mean(squares((module(torch.tensor(np.roll(X, k, 1)))[:, 0]).detach().numpy(), Y))
            for k in range(6)
        ]
    )
    assert float(value.detach()) == pytest.approx(by_hand)
    assert module.weight.grad is not None and module.weight.grad.abs().max() > 0
    w = torch.ones(6, dtype=torch.float64, requires_grad=True)
    orbit_loss(
        lambda Z: Z @ w, lambda out, y: squares(out, torch.tensor(y)), torch.tensor(X), Y, cyclic(6)
    ).backward()
    assert w.grad.std() < 1e-12  # equal weights have equal gradients


def circle_loss(n, points, targets):
    group = planar_rotations(n)

    def loss(w):
        return orbit_loss(
            lambda Z: torch.tanh(Z @ w), squares, torch.tensor(points), torch.tensor(targets), group
        )

    return loss


def test_gradients_have_no_component_along_orbits():
    points, targets = RNG.standard_normal((10, 2)), RNG.standard_normal(10)
    turn, w = np.array([[0.0, -1.0], [1.0, 0.0]]), np.array([0.8, -0.5])
    assert abs(orbit_gradient_component(circle_loss(64, points, targets), w, turn)) < 1e-10
    few = orbit_gradient_component(circle_loss(3, points, targets), w, turn)
    assert abs(few) > 1e-4  # three turns are not all


def test_the_component_is_the_slope_along_the_orbit():
    """The derivative of t -> loss(exp(tA) w), over the lengths of gradient and velocity."""
    A, W = np.random.default_rng(3).standard_normal((2, 3, 3))

    def loss(w):
        return (torch.sin(w) * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)).sum()

    h = 1e-6
    there, back = (float(loss(torch.tensor(W + t * (A @ W.T).T))) for t in (h, -h))
    lengths = np.linalg.norm(np.cos(W) * [1.0, 2.0, 3.0]) * np.linalg.norm(A @ W.T)
    found = orbit_gradient_component(loss, W, A)
    assert found == pytest.approx((there - back) / (2 * h) / lengths, abs=1e-8) and abs(found) > 0.01


def test_printed_sign_of_gradient_flow_climbs():
    """With dw/dt = +grad L the loss grows along the flow; with the minus it falls."""
    from pindown.symmetry.augmentation import loss_gradient

    points, targets = RNG.standard_normal((10, 2)), RNG.standard_normal(10)
    loss = circle_loss(16, points, targets)

    def end(sign):
        w = np.array([0.8, -0.5])
        for _ in range(20):
            w = w + sign * 0.02 * loss_gradient(loss, w)
        return float(loss(torch.tensor(w)))

    start = float(loss(torch.tensor([0.8, -0.5], dtype=torch.float64)))
    assert end(-1) < start < end(1)


def network_loss(group, output):
    moved = [torch.tensor(group.act(i, X)) for i in range(group.order)]
    targets = torch.tensor(Y)

    def loss(W):
        losses = [((torch.relu(Z @ W.T) @ output - targets) ** 2).mean() for Z in moved]
        return sum(losses) / len(losses)

    return loss


def descend(loss, W, steps, rate):
    """Return the last weights and all gradients, in order."""
    from pindown.symmetry.augmentation import loss_gradient

    gradients = []
    for _ in range(steps):
        gradients.append(loss_gradient(loss, W))
        W = W - rate * gradients[-1]
    return W, gradients


@pytest.mark.parametrize("group", [cyclic(6), dihedral(6).permuting()], ids=["C6", "D6"])
def test_gradients_move_with_the_weights(group):
    W = RNG.standard_normal((4, 6))
    output = torch.tensor(RNG.standard_normal(4))
    assert gradient_equivariance_error(network_loss(group, output), W, group) < 1e-10
    partial = network_loss(cyclic(1).acting_by([np.eye(6)]), output)
    assert gradient_equivariance_error(partial, W, group) > 0.1


def test_orbits_stay_orbits_and_parts_of_orbits_do_not():
    group = cyclic(6)
    W = orbit_init(group, 1, 6, random_state=1)
    assert W.shape == (6, 6) and orbit_deviation(W, group) == 0.0
    equal = torch.full((6,), 0.3, dtype=torch.float64)
    after, _ = descend(network_loss(group, equal), W, 100, 0.1)
    assert orbit_deviation(after, group) < 1e-10 and np.linalg.norm(after - W) > 0.3
    # The unit of element g is still g applied to the first unit.
    assert np.abs(after - group.orbit(after[0])).max() < 1e-10
    part, _ = descend(network_loss(group, equal[:4]), W[:4], 100, 0.1)
    assert np.abs(part - group.orbit(part[0])[:4]).max() > 0.1  # all units of the orbit are needed
    unequal = equal * torch.arange(1, 7)
    broken, _ = descend(network_loss(group, unequal), W, 100, 0.1)
    assert orbit_deviation(broken, group) > 0.1


def test_printed_sum_of_gradients_starts_one_step_late():
    """W_T = W_0 - rate * sum over k = 0, ..., T - 1; from 1 to T it misses the first gradient."""
    group = cyclic(6)
    loss = network_loss(group, torch.full((6,), 0.3, dtype=torch.float64))
    W = orbit_init(group, 1, 6, random_state=2)
    last, gradients = descend(loss, W, 5, 0.1)
    _, more = descend(loss, W, 6, 0.1)
    assert np.allclose(W - 0.1 * np.sum(gradients, axis=0), last)
    assert np.abs(W - 0.1 * np.sum(more[1:], axis=0) - last).max() > 1e-3


def test_symmetric_weights_stay_symmetric():
    group = cyclic(6)
    W = np.outer(RNG.standard_normal(3), np.ones(6))  # every g leaves every row as it is
    after, _ = descend(network_loss(group, torch.tensor([1.0, -2.0, 0.5]).double()), W, 50, 0.05)
    assert np.abs(after - np.roll(after, 1, axis=1)).max() < 1e-10 and np.abs(after - W).max() > 0.01


def test_deviation_measures_the_distance_to_the_nearest_row():
    W = np.eye(4)[:2]
    assert orbit_deviation(W, cyclic(4)) == pytest.approx(np.sqrt(2))
    assert 0 < orbit_deviation(W, cyclic(4), "mean") < np.sqrt(2)
    assert orbit_deviation(np.zeros((2, 4)), cyclic(4)) == 0.0
    for how in ("worst", "mean"):  # relative to the rows
        plain = orbit_deviation(W, cyclic(4), how)
        assert orbit_deviation(5 * W, cyclic(4), how) == pytest.approx(plain)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: orbit_init(cyclic(6), 0, 6), "n_templates"),
        (lambda: orbit_init(cyclic(6), 1, 5), "vectors of 6 numbers"),
        (lambda: orbit_deviation(np.zeros(3), cyclic(3)), "rows"),
        (lambda: orbit_deviation(np.eye(3), cyclic(3), "best"), "one of 'worst', 'mean'"),
        (lambda: orbit_gradient_component(lambda w: w.sum(), [1.0], np.eye(2)), "generator"),
        (lambda: orbit_gradient_component(lambda w: 1.0, [1.0], np.eye(1)), "one number"),
        (lambda: gradient_equivariance_error(lambda W: W.sum(), [1.0], cyclic(1)), "rows"),
        (lambda: loss_of(np.zeros(6), cyclic(6), n_samples=0), "n_samples"),
        (lambda: loss_of(np.zeros(6), cyclic(6), X[:0], Y[:0]), "one target"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("k", "a"), [(2.3, 0.7), (0.0, 1.5), (5.0, 0.1), (-3.0, 2.0)])
def test_the_multiplier_is_the_integral(k, a):
    assert window_multiplier(k, a) == pytest.approx(quad(lambda t: np.cos(k * t), -a, a)[0], abs=1e-12)


def test_printed_constant_of_the_window_is_wrong():
    """2a sinc(2ka) belongs to frequencies in cycles; at a = 0.7, k = 2.3 it has the wrong sign."""
    a, k = 0.7, 2.3
    exact = quad(lambda t: np.cos(k * t), -a, a)[0]
    normalised, plain = 2 * a * np.sinc(2 * k * a), 2 * a * np.sin(2 * k * a) / (2 * k * a)
    assert window_multiplier(k, a) == pytest.approx(exact) == pytest.approx(0.8689, abs=1e-4)
    assert normalised == pytest.approx(-0.088, abs=1e-3) and plain == pytest.approx(-0.034, abs=1e-3)
    cycles = quad(lambda t: np.cos(2 * np.pi * k * t), -a, a)[0]
    assert normalised == pytest.approx(cycles)  # where the printed one is right


@pytest.mark.parametrize(("n", "half_width"), [(32, 3), (33, 0), (33, 16), (7, 20)])
def test_box_averages_multiply_the_spectrum(n, half_width):
    signal = np.random.default_rng(0).standard_normal(n)
    multiplier = grid_window_multiplier(np.arange(n), half_width, n) / (2 * half_width + 1)
    spectrum = np.fft.fft(box_average(signal, half_width))
    assert np.abs(spectrum - multiplier * np.fft.fft(signal)).max() < 1e-10


def test_the_whole_circle_leaves_the_mean_and_fine_grids_the_integral():
    signal = np.random.default_rng(1).standard_normal(9)
    assert np.allclose(box_average(signal, 4), signal.mean())
    # A window of fixed width on ever finer grids: the Dirichlet kernel tends to the sinc.
    a, k, n = 0.5, 3, 20_000
    half_width = round(a * n / (2 * np.pi))
    assert grid_window_multiplier(k, half_width, n) * 2 * np.pi / n == pytest.approx(
        float(window_multiplier(k, a)), abs=1e-3
    )


def test_bad_windows_are_refused():
    with pytest.raises(ValueError, match="a must be a finite number of at least 0"):
        window_multiplier(1.0, -1.0)
    with pytest.raises(ValueError, match="half_width must be an integer of at least 0"):
        grid_window_multiplier(1, -1, 4)
    with pytest.raises(ValueError, match="half_width"):
        box_average([1.0], -1)
