"""The torch optimisers: equal to torch's own where they should be, to NumPy everywhere else."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

from pindown.optim import (
    NAG,
    Adam,
    AdamRule,
    HeavyBall,
    HeavyBallRule,
    NAGRule,
    Problem,
    RMSProp,
    RMSPropRule,
    log_cosh,
    minimize,
)

ALL = {
    "NAG": lambda p, **more: NAG(p, lr=0.05, momentum=0.9, **more),
    "HeavyBall": lambda p, **more: HeavyBall(p, lr=0.05, momentum=0.9, **more),
    "RMSProp": lambda p, **more: RMSProp(p, lr=0.05, decay=0.9, shift=0.1, **more),
    "RMSProp, no shift": lambda p, **more: RMSProp(p, lr=0.05, shift=0.0, **more),
    "RMSProp, torch": lambda p, **more: RMSProp(p, lr=0.05, shift=0.1, style="torch", **more),
    "RMSProp, tf1": lambda p, **more: RMSProp(p, lr=0.05, shift=0.1, style="tf1", **more),
    "Adam": lambda p, **more: Adam(p, lr=0.05, shift=0.1, **more),
    "Adam, constant": lambda p, **more: Adam(p, lr=0.05, shift=0.1, schedule="constant", **more),
    "Adam, theorem": lambda p, **more: Adam(p, lr=0.05, betas=(0.1, 0.9), schedule="theorem", **more),
    "Adam, optimal": lambda p, **more: Adam(p, lr=0.5, shift=0.1, schedule="optimal", **more),
}
every = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())


def model(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).to(dtype)


def data(dtype=torch.float64):
    torch.manual_seed(1)
    return torch.randn(20, 3, dtype=dtype), torch.randn(20, 2, dtype=dtype)


def train(net, optimiser, steps=20):
    X, y = data(next(net.parameters()).dtype)
    losses = []

    def closure():
        optimiser.zero_grad()
        loss = ((net(X) - y) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(steps):
        losses.append(float(optimiser.step(closure).detach()))
    return losses


def weights(net):
    return torch.cat([p.detach().ravel() for p in net.parameters()])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            lambda p: NAG(p, lr=0.05, momentum=0.9, weight_decay=0.01),
            lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
        ),
        (
            lambda p: HeavyBall(p, lr=0.05, momentum=0.9, maximize=True, weight_decay=0.1),
            lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, maximize=True, weight_decay=0.1),
        ),
        (
            lambda p: RMSProp(p, lr=0.01, decay=0.95, shift=1e-3, style="torch"),
            lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.95, eps=1e-3),
        ),
    ],
    ids=["NAG", "HeavyBall", "RMSProp"],
)
def test_equal_to_torch_step_for_step(ours, theirs):
    a, b = model(), model()
    first, second = ours(a.parameters()), theirs(b.parameters())
    for _ in range(30):
        train(a, first, 1), train(b, second, 1)
        assert torch.allclose(weights(a), weights(b), rtol=1e-10, atol=1e-12)


def test_torch_adam_is_this_one_with_a_shift_that_grows():
    """Theirs divides by sqrt(v) + eps sqrt(1 - b2^t), after the same correction of the step size."""
    a, b, eps, beta2 = model(), model(), 0.05, 0.99
    first = Adam(a.parameters(), lr=0.01, betas=(0.9, beta2), shift=1.0)
    second = torch.optim.Adam(b.parameters(), lr=0.01, betas=(0.9, beta2), eps=eps)
    for t in range(1, 31):
        first.param_groups[0]["shift"] = eps * (1 - beta2**t) ** 0.5
        train(a, first, 1), train(b, second, 1)
        assert torch.allclose(weights(a), weights(b), rtol=1e-10, atol=1e-12)
    with_constant_shift = model()
    train(with_constant_shift, Adam(with_constant_shift.parameters(), 0.01, (0.9, beta2), eps), 30)
    assert not torch.allclose(weights(with_constant_shift), weights(b), atol=1e-3)


RULES = {
    "NAG": (lambda p: NAG(p, 0.1, 0.8), NAGRule(0.1, 0.8)),
    "HeavyBall": (lambda p: HeavyBall(p, 0.1, 0.8), HeavyBallRule(0.1, 0.8)),
    "RMSProp": (lambda p: RMSProp(p, 0.1, 0.8, 0.3), RMSPropRule(0.1, 0.8, 0.3)),
    "no shift": (lambda p: RMSProp(p, 0.1, 0.8, 0.0), RMSPropRule(0.1, 0.8, 0.0)),
    **{
        schedule: (
            lambda p, s=schedule: Adam(p, 0.3, (0.2, 0.7), 0.4, schedule=s),
            AdamRule(0.3, (0.2, 0.7), 0.4, schedule),
        )
        for schedule in ("bias_corrected", "constant", "theorem", "optimal")
    },
}


@pytest.mark.parametrize(("make", "rule"), RULES.values(), ids=RULES.keys())
def test_equal_to_the_numpy_reference(make, rule):
    start = np.array([2.0, -1.5, 0.0, 0.7])
    problem = log_cosh(4, scale=1.5)
    # two tensors in two groups: norms and inner products go over all of them
    parts = [torch.nn.Parameter(torch.tensor(start[:3])), torch.nn.Parameter(torch.tensor(start[3:]))]
    optimiser = make([{"params": parts[:1]}, {"params": parts[1:]}])
    for _ in range(25):
        optimiser.zero_grad()
        (1.5 * torch.log(torch.cosh(torch.cat(parts))).sum()).backward()
        optimiser.step()
    expected = minimize(problem, start, rule, steps=25).point
    assert np.allclose(torch.cat(parts).detach().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_nesterov_is_the_look_ahead_form():
    """u' = mu u - a grad(y + mu u), y' = y + u', with y + mu u the iterate of the other form."""
    mu, lr, problem = 0.8, 0.2, log_cosh(3)
    y, u = np.array([2.0, -1.0, 0.5]), np.zeros(3)
    for t in range(1, 20):
        trace = minimize(problem, [2.0, -1.0, 0.5], NAGRule(lr, mu), steps=t)
        u = mu * u - lr * problem.gradient(y + mu * u)
        y = y + u
        assert np.allclose(trace.point, y + mu * u, atol=1e-13)
        assert np.allclose(trace.state["v"], -u / lr, atol=1e-13)


def test_tf1_style_starts_its_average_at_one():
    x = torch.nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    optimiser, w, expected = RMSProp([x], 0.1, 0.9, 0.01, style="tf1"), 1.0, 2.0
    for g in (3.0, -1.0, 0.5):
        x.grad = torch.tensor([g], dtype=torch.float64)
        optimiser.step()
        w = 0.9 * w + 0.1 * g**2
        expected -= 0.1 * g / (w + 0.01) ** 0.5
        assert x.item() == pytest.approx(expected, rel=1e-12)


def test_bounds_on_the_average_of_rmsprop():
    """(1 - b2) shift <= (1 - b2^t) shift <= v_t <= (1 - b2^t)(G^2 + shift)."""
    rng, decay, shift, v = np.random.default_rng(0), 0.8, 0.3, np.zeros(50)
    rule, state, G = RMSPropRule(0.1, decay, shift), {"v": np.zeros(50)}, 2.0
    for t in range(1, 40):
        g = rng.uniform(-G, G, 50)
        rule.move(state, g, t)
        v = decay * v + (1 - decay) * g**2  # without the shift
        assert np.allclose(state["v"], v + shift * (1 - decay**t), rtol=1e-12)
        assert np.all((1 - decay) * shift * (1 - 1e-12) <= state["v"])
        assert np.all(state["v"] <= (1 - decay**t) * (G**2 + shift) * (1 + 1e-12))


def test_without_shift_a_coordinate_without_gradient_stays():
    for dtype in (torch.float32, torch.float64):
        x = torch.nn.Parameter(torch.tensor([1.0, 1.0, 1.0], dtype=dtype))
        optimiser = RMSProp([x], lr=0.1, shift=0.0)
        for _ in range(3):
            x.grad = torch.tensor([0.0, 2.0, 1e-30], dtype=dtype)  # the square of the last underflows
            optimiser.step()
        assert x[0] == 1 and x[1] < 1 and bool(torch.isfinite(x).all())


@every
def test_state_dict_round_trip(make):
    net = model()
    optimiser = make(net.parameters())
    train(net, optimiser, 5)
    buffer = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimiser": optimiser.state_dict()}, buffer)
    buffer.seek(0)
    saved = torch.load(buffer, weights_only=True)
    other = model(seed=9)
    other.load_state_dict(saved["net"])
    resumed = make(other.parameters())
    resumed.load_state_dict(saved["optimiser"])
    train(net, optimiser, 5), train(other, resumed, 5)
    assert torch.equal(weights(net), weights(other))


@every
def test_copies_and_pickles(make):
    net = model()
    optimiser = make(net.parameters())
    train(net, optimiser, 3)
    again = pickle.loads(pickle.dumps(optimiser))
    assert again.state_dict()["state"].keys() == optimiser.state_dict()["state"].keys()
    assert type(copy.deepcopy(optimiser)) is type(optimiser)


@every
def test_it_descends_and_the_closure_is_called_once(make):
    net = model()
    losses = train(net, make(net.parameters()), 60)
    assert losses[-1] < losses[0]
    calls = []

    def closure():
        calls.append(1)
        return 3.5

    assert make(net.parameters()).step(closure) == 3.5 and calls == [1]


@every
def test_parameter_groups_keep_their_own_settings(make):
    a, b = (torch.nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(2))
    optimiser = make([{"params": [a]}, {"params": [b], "lr": 0.0}])
    for _ in range(3):
        for p in (a, b):
            p.grad = torch.ones_like(p)
        optimiser.step()
    assert bool((a < 1).all()) and bool((b == 1).all())


@every
def test_maximize_is_the_mirror_image(make):
    a, b = (torch.nn.Parameter(torch.zeros(3, dtype=torch.float64)) for _ in range(2))
    down, up = make([a]), make([b], maximize=True)
    for g in (1.0, -2.0, 0.5):
        a.grad = torch.full_like(a, -g)
        b.grad = torch.full_like(b, g)
        down.step(), up.step()
    assert torch.equal(a, b)


@every
def test_weight_decay_adds_the_parameters_to_the_gradient(make):
    a, b = (torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64)) for _ in range(2))
    with_decay, without = make([a], weight_decay=0.3), make([b])
    for g in (1.0, -2.0, 0.5):
        a.grad = torch.full_like(a, g)
        b.grad = torch.full_like(b, g) + 0.3 * b.detach()
        with_decay.step(), without.step()
    assert torch.allclose(a, b, rtol=1e-14)


@every
def test_parameters_without_gradient_wait(make):
    a, b = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    optimiser = make([a, b])
    optimiser.step()
    a.grad = torch.ones(2)
    optimiser.step()
    assert bool((a < 1).all()) and bool((b == 1).all()) and b not in optimiser.state


@every
def test_sparse_and_complex_are_refused_in_words(make):
    table = torch.nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(ValueError, match=r"dense gradients; .*\(5, 2\).*sparse=False"):
        make(table.parameters()).step()
    z = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    z.grad = torch.ones_like(z)
    with pytest.raises(ValueError, match="view_as_real"):
        make([z]).step()


@every
def test_mixed_types_scalars_and_empty_tensors(make):
    params = [
        torch.nn.Parameter(torch.ones(3, dtype=torch.float32)),
        torch.nn.Parameter(torch.ones(2, 2, dtype=torch.float64).t()),
        torch.nn.Parameter(torch.tensor(1.0)),
        torch.nn.Parameter(torch.ones(0)),
    ]
    optimiser = make(params)
    for _ in range(2):
        for p in params:
            p.grad = torch.ones_like(p)
        optimiser.step()
    assert all(bool((p < 1).all()) for p in params)
    assert [p.dtype for p in params[:2]] == [torch.float32, torch.float64]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: NAG(p, lr=-1),
        lambda p: NAG(p, lr=float("nan")),
        lambda p: NAG(p, momentum=1.0),
        lambda p: HeavyBall(p, momentum=-0.1),
        lambda p: HeavyBall(p, weight_decay=-1),
        lambda p: RMSProp(p, decay=1.0),
        lambda p: RMSProp(p, shift=-1e-9),
        lambda p: RMSProp(p, style="keras"),
        lambda p: Adam(p, betas=(0.9, 1.0)),
        lambda p: Adam(p, betas=(0.9,)),
        lambda p: Adam(p, betas=0.9),
        lambda p: Adam(p, shift=0.0),
        lambda p: Adam(p, schedule="cosine"),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(ValueError, match=r"must be .*got"):
        make([torch.nn.Parameter(torch.ones(1))])


def test_a_tensor_as_step_size_is_refused():
    with pytest.raises(TypeError, match=r"lr\.item"):
        NAG([torch.nn.Parameter(torch.ones(1))], lr=torch.tensor(0.1))


def test_learning_rate_schedulers_work():
    net = model()
    optimiser = Adam(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 1, gamma=0.5)
    for _ in range(3):
        train(net, optimiser, 1)
        scheduler.step()
    assert optimiser.param_groups[0]["lr"] == pytest.approx(0.0125)


def test_minimize_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="2 finite numbers"):
        minimize(log_cosh(2), [1.0], NAGRule(0.1), steps=1)
    with pytest.raises(ValueError, match="finite"):
        minimize(log_cosh(1), [np.nan], NAGRule(0.1), steps=1)
    square = Problem("square", 1, lambda x: float(x @ x), lambda x: 2 * x, log_cosh(1).constants)
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="step size is too large"),
    ):
        minimize(square, [1.0], NAGRule(1e9, 0.0), steps=100)
    assert len(minimize(log_cosh(1), [1.0], NAGRule(0.1), steps=0).values) == 1


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (NAG, {"lr": -1.0}),
        (HeavyBall, {"momentum": 1.0}),
        (RMSProp, {"style": "caffe"}),
        (RMSProp, {"decay": 2.0}),
        (Adam, {"schedule": "warm"}),
        (Adam, {"betas": (0.9, 1.0)}),
    ],
)
def test_settings_of_a_group_are_checked_too(make, setting):
    first, second = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    with pytest.raises(ValueError, match=r"must be .*got"):
        make([{"params": [first], **setting}])
    optimiser = make([first])
    with pytest.raises(ValueError, match=r"must be .*got"):
        optimiser.add_param_group({"params": [second], **setting})
    assert len(optimiser.param_groups) == 1
    optimiser.add_param_group({"params": [second], "name": "second"})  # torch allows names
    assert optimiser.param_groups[1]["name"] == "second"


def test_numbers_of_numpy_become_plain_ones_that_state_files_hold(tmp_path):
    x = torch.nn.Parameter(torch.ones(2))
    optimiser = Adam([x], lr=np.float32(0.5), betas=np.array([0.5, 0.75]))
    assert type(optimiser.param_groups[0]["lr"]) is float
    torch.save(optimiser.state_dict(), tmp_path / "state.pt")
    kept = torch.load(tmp_path / "state.pt", weights_only=True)
    assert kept["param_groups"][0]["betas"] == (0.5, 0.75)


def test_a_shift_that_is_zero_in_half_precision_makes_no_nan():
    x = torch.nn.Parameter(torch.ones(3, dtype=torch.float16))
    x.grad = torch.tensor([0.0, 1e-3, 1.0], dtype=torch.float16)
    RMSProp([x]).step()  # a shift of 1e-10 is zero in float16: as without a shift
    assert torch.isfinite(x).all() and x[0] == 1
    with pytest.raises(ValueError, match=r"is zero in torch\.float16"):
        Adam([x])


@pytest.mark.parametrize("schedule", ["theorem", "optimal"])
def test_a_gradient_that_is_no_number_is_not_hidden(schedule):
    x = torch.nn.Parameter(torch.ones(2))
    x.grad = torch.tensor([float("nan"), 1.0])
    Adam([x], schedule=schedule).step()
    assert torch.isnan(x).all()


@pytest.mark.slow
def test_a_step_costs_about_as_much_as_torchs_fused_adam():
    from benchmarks.optimisers import MODELS, ONE_PASS, ratios

    for widths in MODELS:
        found = ratios(widths, ONE_PASS)
        assert all(found[name][1] <= 1.3 for name in ("NAG", "Adam"))
        assert all(ratio <= 1.6 for _, ratio in found.values())  # norms, and a velocity with its step


def test_momentum_that_comes_later_starts_from_the_last_gradient():
    x = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimiser = NAG([x], 1.0, 0.0)
    x.grad = torch.full_like(x, 2.0)
    optimiser.step()
    optimiser.param_groups[0]["momentum"] = 0.5
    x.grad = torch.zeros_like(x)
    optimiser.step()  # v = 0.5 * 2, and x moves by half of it
    assert x.item() == -2.5


@pytest.mark.parametrize(
    "make",
    [
        lambda p: NAG(p, 0.05, 0.9, weight_decay=0.1),
        lambda p: NAG(p, 0.05, 0.0),
        lambda p: Adam(p, 0.05, (0.5, 0.8), 0.1),
        lambda p: Adam(p, 0.05, (0.0, 0.8), 0.1, schedule="constant"),
        lambda p: Adam(p, 0.05, (0.5, 0.8), 0.1, schedule="theorem", maximize=True),
        lambda p: Adam(p, 0.05, (0.5, 0.8), 0.1, schedule="optimal"),
    ],
    ids=["NAG", "no momentum", "corrected", "constant", "theorem", "optimal"],
)
def test_one_pass_steps_like_several(make):
    """A transposed tensor is not contiguous, and takes the other way to the same place."""
    start = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    plain = torch.nn.Parameter(start.clone())
    turned = torch.nn.Parameter(start.T.contiguous().T)
    first, second = make([plain]), make([turned])
    for t in range(6):
        plain.grad = torch.sin(3 * start + t)
        turned.grad = plain.grad.clone()
        first.step(), second.step()
        assert torch.allclose(plain, turned, rtol=1e-13, atol=1e-14)
    assert not torch.allclose(plain.detach(), start)


def test_an_optimal_step_against_the_gradient_is_not_taken():
    """Momentum that still points uphill: the best step along it has length zero."""
    x = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimiser = Adam([x], 0.5, (0.9, 0.9), 0.1, schedule="optimal")
    rule = AdamRule(0.5, (0.9, 0.9), 0.1, "optimal")
    state, places, moves = rule.start(np.zeros(1)), [], []
    for t, g in enumerate((1.0, -0.01, -4.0), 1):
        x.grad = torch.tensor([g], dtype=torch.float64)
        optimiser.step()
        places.append(x.item())
        moves.append(float(rule.move(state, np.array([g]), t)[0]))
    assert moves[1] == 0 and places[1] == places[0] < 0 < moves[2]
    assert places == pytest.approx(np.cumsum(moves))
