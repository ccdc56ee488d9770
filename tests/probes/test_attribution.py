"""Integrated gradients: completeness to rounding, pieces against sums of many steps, and captum's."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pindown import Model, ReluNetwork
from pindown.model.builder import Builder
from pindown.model.operations.dense import Dense
from pindown.model.operations.smooth import Tanh
from pindown.probes import Differentiable, attributions, draw_attributions, integrated_gradients
from tests.verification.nets import random_network

CAPTUM = json.loads((Path(__file__).parents[1] / "data/captum_integrated_gradients.json").read_text())


def tanh_model(rng, widths=(3, 9, 4)):
    graph = Builder((1, widths[0]))
    hidden = graph.add(
        Tanh(), graph.add(Dense(rng.standard_normal((widths[1], widths[0])), None), graph.input)
    )
    last = graph.add(Dense(rng.standard_normal((widths[2], widths[1])), None), hidden)
    return graph.model(last, input_shape=(widths[0],), dtype="float64")


def of_a_hundred(seed):
    """Return one of the 100 networks of the table in the guide, inputs and a baseline."""
    rng = np.random.default_rng([seed, 100])
    widths = [int(rng.integers(2, 20)), *rng.integers(4, 64, rng.integers(1, 5)).tolist(), 3]
    net = random_network(rng, widths)
    return net, rng.standard_normal((3, widths[0])), rng.standard_normal(widths[0])


def test_attributions_of_networks_add_up_to_rounding_and_captum_is_off_by_more():
    """The 100 networks of the table in the guide, which says what is measured here."""
    ours = []
    for seed, theirs in enumerate(CAPTUM["gaps of 100 networks"]):
        net, X, base = of_a_hundred(seed)
        found = attributions(net, X, base)
        ours.append(float(found.relative_gap.max()))
        assert found.kind == "exact" and ours[-1] <= 1e-12 and theirs > 1e-5
        assert found.pieces.sum() > 3
    table = (Path(__file__).parents[2] / "docs/probes.md").read_text("utf-8")
    theirs = CAPTUM["gaps of 100 networks"]
    assert len(theirs) == 100 and max(ours) <= 1e-14
    row = f"50 steps (its default) | {np.median(theirs):.2g} | {max(theirs):.2g} |"
    assert row in table


def test_the_kept_gaps_are_those_of_captum():
    torch = pytest.importorskip("torch")
    captum = pytest.importorskip("captum.attr")
    for seed in range(0, 100, 20):
        net, X, base = of_a_hundred(seed)
        assert gap_of_captum(torch, captum, net, X, base) == pytest.approx(
            CAPTUM["gaps of 100 networks"][seed], rel=1e-2
        )


def gap_of_captum(torch, captum, net, X, base):
    """Return the largest gap of captum's 50 steps, as a share of the sum of absolute attributions."""
    module = net.to_torch().double()
    inputs, start = torch.tensor(X), torch.tensor(base)[None].expand(len(X), -1)
    output = net(X).argmax(axis=1)
    made = captum.IntegratedGradients(module).attribute(
        inputs, start, target=torch.tensor(output), n_steps=50
    )
    values = made.detach().numpy()
    change = net(X)[np.arange(len(X)), output] - net(base[None])[0][output]
    return float((np.abs(values.sum(axis=1) - change) / np.abs(values).sum(axis=1)).max())


@pytest.mark.parametrize("case", CAPTUM["cases"], ids=lambda case: str(case["widths"]))
def test_captum_with_fifty_steps_is_off_by_more_and_with_many_comes_near(case):
    rng = np.random.default_rng(case["seed"])
    net = ReluNetwork.from_layers(
        [
            (rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m))
            for n, m in pairwise(case["widths"])
        ]
    )
    X, base = rng.standard_normal((2, net.in_features)), rng.standard_normal(net.in_features)
    found = attributions(net, X, base)
    few, many = (np.array(case[f"steps {steps}"]) for steps in (50, 20000))
    size = np.abs(found.values).sum(axis=1)
    assert (found.gap <= 1e-14 * size).all()
    assert (np.abs(few.sum(axis=1) - found.change) > 1e-5 * size).all()
    np.testing.assert_allclose(found.values, many, atol=1e-4 * size.max())
    assert np.abs(few - many).max() > np.abs(found.values - many).max() * 10


def test_smooth_models_are_integrated_to_the_tolerance():
    """A product: f = x1 x2 from b to x has the attributions (x1 - b1)(x2 + b2) / 2 and the other."""
    product = Differentiable(lambda X: X[:, 0] * X[:, 1], lambda a, X: a * X[:, ::-1])
    X, base = np.array([[2.0, 3.0], [1.0, -4.0]]), np.array([0.5, -1.0])
    found = attributions(product, X, base, output=0)
    np.testing.assert_allclose(found.values, (X - base) * (X + base)[:, ::-1] / 2, rtol=1e-12)
    assert found.kind == "estimate" and (found.gap < 1e-12).all()
    rng = np.random.default_rng(1)
    model, X = tanh_model(rng), 3 * rng.standard_normal((4, 3))
    rough, fine = (attributions(model, X, tol=tol) for tol in (1e-3, 1e-9))
    times = (np.arange(2000)[:, None] + 0.5) / 2000
    for x, values, k in zip(X, fine.values, fine.output, strict=True):
        near = [[model(times * x + s * 1e-6 * e)[:, k] for s in (1, -1)] for e in np.eye(3)]
        slopes = np.array([(above - below).mean() / 2e-6 for above, below in near])
        np.testing.assert_allclose(values, x * slopes, atol=1e-5)
    size = np.abs(fine.values).sum(axis=1)
    assert (np.abs(rough.values - fine.values).sum(axis=1) <= 2e-3 * size).all()
    assert (fine.error <= 1e-9 * size).all() and fine.pieces.sum() > rough.pieces.sum()


def test_kinks_that_are_not_known_are_halved_around():
    """The same network as a function of arrays: adaptive steps come near the exact pieces."""
    rng = np.random.default_rng(2)
    net, X = random_network(rng, [3, 8, 2]), rng.standard_normal((2, 3))

    def pull(a, X):
        h = 1e-7  # one side of every kink
        return np.stack([((net(X + h * e) - net(X)) * a).sum(axis=1) / h for e in np.eye(3)], axis=1)

    exact = attributions(net, X)
    found = attributions(Differentiable(net, pull), X, output=exact.output, tol=1e-5)
    np.testing.assert_allclose(found.values, exact.values, atol=1e-4)


def test_a_kink_in_the_middle_takes_two_intervals():
    bent = Differentiable(lambda X: np.maximum(X, 0.0), lambda a, X: a * (X > 0))
    found = attributions(bent, np.array([[1.0]]), np.array([[-1.0]]), [0])
    assert found.pieces.tolist() == [2] and found.values[0, 0] == pytest.approx(1.0, abs=1e-12)


def test_paths_and_baselines():
    rng = np.random.default_rng(3)
    net, x = random_network(rng, [3, 12, 2]), rng.standard_normal(3)
    bases, stop = rng.standard_normal((4, 3)), rng.standard_normal(3)
    mean = integrated_gradients(net, x, bases, 1)
    each = [integrated_gradients(net, x, b, 1) for b in bases]
    np.testing.assert_allclose(mean, np.mean(each, axis=0), rtol=1e-12)
    whole = attributions(net, x[None], bases, [1])
    assert whole.change[0] == pytest.approx(net(x)[1] - net(bases)[:, 1].mean(), abs=1e-12)
    detour = integrated_gradients(net, x, bases[0], 1, through=stop)
    parts = integrated_gradients(net, stop, bases[0], 1) + integrated_gradients(net, x, stop, 1)
    np.testing.assert_allclose(detour, parts, rtol=1e-12)
    assert detour.sum() == pytest.approx(net(x)[1] - net(bases[0])[1], abs=1e-12)
    # An input that does not move, and one that the network does not see, get nothing.
    W = rng.standard_normal((5, 3))
    W[:, 2] = 0.0
    blind = ReluNetwork.from_layers([(W, np.ones(5)), (rng.standard_normal((1, 5)), [0.0])])
    assert integrated_gradients(blind, x)[2] == 0.0
    assert integrated_gradients(net, x, [x[0], 0.0, 0.0])[0] == 0.0


def test_images_modules_and_pictures():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(48, 4),
    ).double()  # fmt: skip
    X = np.random.default_rng(4).random((3, 1, 8, 8))
    found = attributions(module, X)
    assert found.values.shape == X.shape and found.kind == "exact" and found.relative_gap.max() < 1e-12
    again = attributions(Model.from_torch(module, (1, 8, 8)), X)
    np.testing.assert_array_equal(found.values, again.values)
    figure = draw_attributions(found, X, rows=2)
    shown = figure.axes[1].images[0]
    assert len(figure.axes) == 4 and shown.get_array().shape == (8, 8)
    assert shown.get_clim()[1] == -shown.get_clim()[0] == np.abs(found.values[0]).max()
    assert len(found.draw().axes) == 3
    wide = attributions(ReluNetwork.from_layers([(np.arange(20.0)[None], [0])]), np.ones((1, 20)))
    assert [bar.get_width() for bar in wide.draw().axes[0].patches] == list(range(4, 20))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": np.nan}, "baseline"),
        ({"baseline": [1.0, 2.0, 3.0]}, "2"),
        ({"output": 5}, "classes 0 to 2"),
        ({"tol": 0.0}, "tol"),
        ({"through": []}, "through"),
        ({"budget": -1.0}, "budget"),
    ],
)
def test_bad_questions_are_refused(options, message):
    net = random_network(np.random.default_rng(5), [2, 4, 3])
    with pytest.raises(ValueError, match=message):
        integrated_gradients(net, np.ones((2, 2)), **options)


def test_no_inputs_no_attributions():
    net = random_network(np.random.default_rng(6), [2, 4, 3])
    assert integrated_gradients(net, np.zeros((0, 2))).shape == (0, 2)


def test_where_pieces_are_too_many_the_integral_is_estimated(monkeypatch):
    """The same answer to the error that it states."""
    from pindown.probes import attribution

    rng = np.random.default_rng(3)
    layers = [(rng.normal(size=(m, n)), rng.normal(size=m)) for m, n in ((40, 6), (40, 40), (2, 40))]
    net, x = ReluNetwork.from_layers(layers), rng.normal(size=(1, 6))
    exact = attributions(net, x)
    monkeypatch.setattr(attribution, "MAX_EXACT_ENTRIES", 100)
    found = attributions(net, x)
    assert exact.kind == "exact" and found.kind == "estimate"
    assert found.error[0] > 0 and np.abs(found.values - exact.values).sum() <= 10 * found.error[0]
    assert found.relative_gap[0] < 1e-4
