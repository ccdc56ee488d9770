"""Gradient flow: exact solutions, the order of the error, one path at three speeds, bad input."""

import numpy as np
import pytest

from pindown.bias import gradient_flow, module_flow

A = np.array([[3.0, 1.0], [1.0, 2.0]])


def exact(t):
    values, vectors = np.linalg.eigh(A)
    return vectors @ (np.exp(-values * t) * (vectors.T @ np.array([1.0, -1.0])))


def test_ivp_meets_the_exact_solution_of_a_quadratic():
    path = gradient_flow(
        lambda w: A @ w, [1.0, -1.0], time=2.0, method="ivp", loss=lambda w: w @ A @ w / 2
    )
    assert path.end == pytest.approx(exact(2.0), abs=1e-7)
    assert (np.diff(path.losses) <= 0).all() and len(path.times) == 101


def test_euler_has_an_error_of_order_one():
    errors = [
        np.linalg.norm(gradient_flow(lambda w: A @ w, [1.0, -1.0], time=1.0, step=h).end - exact(1.0))
        for h in (0.02, 0.01, 0.005)
    ]
    orders = np.diff(np.log(errors)) / np.log(0.5)
    assert orders == pytest.approx([1, 1], abs=0.1)


def test_the_flow_goes_down():
    """The course loses the sign once; with a plus the loss rises."""
    down = gradient_flow(lambda w: A @ w, [1.0, -1.0], time=1.0, step=0.01, loss=lambda w: w @ A @ w / 2)
    printed = gradient_flow(
        lambda w: -A @ w, [1.0, -1.0], time=1.0, step=0.01, loss=lambda w: w @ A @ w / 2
    )
    assert (np.diff(down.losses) < 0).all() and (np.diff(printed.losses) > 0).all()


def test_normalised_follows_the_same_path_in_the_time_of_the_flow():
    def loss(w):
        return float(np.exp(-w).sum())

    path = gradient_flow(
        lambda w: -np.exp(-w), [1.0, 2.0], time=3.0, step=1e-3, method="normalised", loss=loss
    )
    for time, point in zip(path.times[1:], path.points[1:], strict=True):
        assert point == pytest.approx(np.log(time + np.exp([1.0, 2.0])), abs=2e-3)
    far = gradient_flow(lambda w: -np.exp(-w), [1.0], time=1e4, step=0.5, method="normalised", loss=loss)
    assert far.stopped == "loss" and far.losses[-1] < 1e-290 and np.log(far.times[-1]) > 650


def test_recording():
    def follow(record, **more):
        return gradient_flow(lambda w: w, [1.0], time=1.0, step=0.1, record=record, **more)

    assert len(follow("all").times) == 11
    assert follow(5).times == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert follow([0.3, 0.5]).times == pytest.approx([0, 0.3, 0.5, 1])
    stopped = follow("all", stop=lambda w: w[0] < 0.5)
    assert stopped.stopped == "stop" and stopped.points[-1] < 0.5 <= stopped.points[-2]
    ivp = gradient_flow(lambda w: w, [1.0], time=1.0, method="ivp", record=[0.5])
    assert ivp.times.tolist() == [0, 0.5, 1]


def test_a_module_is_left_at_the_end():
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()
    x = torch.randn(5, 2, dtype=torch.float64)
    path = module_flow(net, lambda m: (m(x) ** 2).mean(), time=1.0, step=0.1)
    now = torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()
    assert now == pytest.approx(path.end) and path.losses[-1] < path.losses[0]
    assert (net(x) ** 2).mean().item() == pytest.approx(path.losses[-1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"start": []}, "start must be"),
        ({"start": [np.nan]}, "start must be"),
        ({"time": 0.0}, "time must be"),
        ({"method": "newton"}, "method must be"),
        ({"step": None}, "step must be"),
        ({"step": 2.0}, "step must be"),
        ({"method": "normalised"}, "pass loss="),
        ({"record": 0}, "at least 1"),
        ({"record": [2.0]}, "times in"),
        ({"record": [0.5, 0.2]}, "rising"),
        ({"record": "some"}, "record must be"),
        ({"gradient": lambda w: w * np.inf}, "left the floats"),
    ],
)
def test_bad_input_is_refused(arguments, words):
    given = {"gradient": lambda w: w, "start": [1.0], "time": 1.0, "step": 0.1, **arguments}
    with pytest.raises(ValueError, match=words):
        gradient_flow(given.pop("gradient"), given.pop("start"), **given)


def test_a_flow_that_slides_along_a_fold_is_given_up():
    with pytest.raises(ValueError, match="slides along a fold"):
        gradient_flow(np.sign, [1.0], time=100.0, method="ivp", max_evaluations=2000)
    with pytest.raises(ValueError, match="max_evaluations must be"):
        gradient_flow(lambda w: w, [1.0], time=1.0, method="ivp", max_evaluations=0)


@pytest.mark.parametrize("method", ["ivp", "euler"])
def test_gradients_of_another_shape_are_refused(method):
    with pytest.raises(ValueError, match="gradient must return 2"):
        gradient_flow(lambda w: w[:1], [1.0, 2.0], time=1.0, step=0.1, method=method)


def test_a_gradient_that_is_not_a_number_is_named():
    with pytest.raises(ValueError, match=r"at time 0 it returned .* NaN"):
        gradient_flow(lambda w: np.nan * w, [1.0], time=1.0, method="ivp")


def test_directions_have_length_one_and_zero_stays_zero():
    path = gradient_flow(lambda w: w, [3.0, 4.0], time=2.0, step=1.0)  # the second step reaches zero
    np.testing.assert_allclose(path.directions[0], [0.6, 0.8])
    assert not path.directions[-1].any()
    half = gradient_flow(lambda w: w, [3.0, 4.0], time=2.0, step=0.5)
    np.testing.assert_allclose(np.linalg.norm(half.directions, axis=1), 1.0)
