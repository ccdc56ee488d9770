"""Two-layer networks: trained ones against the predicted two neurons, invariants, and the KKT "
"conditions."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from pindown.bias import two_layer_limit
from pindown.bias.two_layer import (
    InvariantMonitor,
    Neurons,
    TwoLayerLimit,
    TwoNeuronMaxMargin,
    alignment,
    balanced_neurons,
    class_margins,
    collapse,
    margin_certificate,
    train_two_layer,
)
from pindown.bias.two_layer.training import log_logistic
from pindown.datasets.synthetic import orthogonally_separable
from pindown.network import ReluNetwork

X2 = np.array([(1, 0.3), (0.2, 0.9), (2, 2.5), (-3, -0.5), (-0.8, -2.5), (-4, -4)])
Y2 = np.array([1, 1, 1, -1, -1, -1])


@pytest.fixture(scope="module")
def trained():
    return train_two_layer(X2, Y2, width=12, steps=6000, step=0.5)


def test_the_trained_network_ends_at_the_prediction(trained):
    limit, net = two_layer_limit(X2, Y2), trained.network
    assert limit.kind == "exact" and limit.positive_norm == pytest.approx(1.190476, abs=1e-6)
    found = alignment(net, X2, Y2)
    assert found.correlations[found.alive].min() > 0.9999
    ratio = (net.W[net.a > 0] ** 2).sum() / (net.W[net.a < 0] ** 2).sum()
    assert ratio == pytest.approx(limit.group_ratio, rel=5e-3)
    points = np.random.default_rng(0).standard_normal((200, 2))
    assert net(points) / net.squared_norm == pytest.approx(limit(points), abs=1e-3)


def test_the_angle_falls_like_one_over_log_t(trained):
    """Of the linear map that each group of neurons amounts to on its own class."""
    limit, clock = two_layer_limit(X2, Y2), -trained.log_losses
    late = clock > 100
    for sign, aim in ((1, limit.positive), (-1, limit.negative)):
        angles = []
        for net, kept in zip(trained.path, late, strict=True):
            if kept:
                total = np.abs(net.a[sign * net.a > 0]) @ net.W[sign * net.a > 0]
                across = abs(total[0] * aim[1] - total[1] * aim[0])
                angles.append(across / np.linalg.norm(total))
        slope = np.polyfit(np.log(clock[late]), np.log(angles), 1)[0]
        assert slope == pytest.approx(-1, abs=0.15)


def test_the_network_collapses_to_two_neurons(trained):
    small = collapse(trained.network, X2)
    assert len(small.sizes) == 2 and small.gap < 1e-3
    points = np.random.default_rng(1).standard_normal((10_000, 2))
    values, limit = trained.network(points), two_layer_limit(X2, Y2)
    clear = np.abs(values) > 1e-3 * np.abs(values).max()
    assert (np.sign(values[clear]) == np.sign(limit(points[clear]))).mean() > 0.995


def test_neurons_on_one_ray_merge_exactly_and_near_ones_by_what_they_contribute():
    W, a = np.array([[3.0, 4.0], [0.6, 0.8], [0.0, 1.0]]), np.array([-2.0, -1.0, 3.0])
    merged = collapse(Neurons(W, a), X2)
    assert merged.sizes == (2, 1) and merged.gap == pytest.approx(0, abs=1e-15)
    near = collapse(Neurons(np.array([[1.0, 0.0], [2.0, 0.2]]), np.array([1.0, 5.0])), X2).network
    assert near.W[0, 1] / near.W[0, 0] == pytest.approx(5 * 0.2 / (1 + 5 * 2.0))  # that of sum a_i w_i
    assert near.imbalance == pytest.approx(0, abs=1e-15)
    assert Neurons(np.array([[3.0, 4.0]]), np.array([-2.0])).imbalance == pytest.approx(3)


def test_slopes_of_the_log_loss_by_differences():
    margins, h = np.array([-20.0, -3.0, 0.0, 2.0, 29.0, 31.0, 40.0]), 1e-6
    for shift in (0.0, 50.0):  # far out, where losses are no longer floats
        value, slopes = log_logistic(margins + shift)
        if not shift:
            assert value == pytest.approx(np.log(np.logaddexp(0, -margins).sum()))
        moved = [log_logistic(margins + shift + h * e)[0] for e in np.eye(len(margins))]
        back = [log_logistic(margins + shift - h * e)[0] for e in np.eye(len(margins))]
        np.testing.assert_allclose((np.array(back) - moved) / (2 * h), slopes, atol=1e-7)


def test_rank_two_on_the_published_data():
    X, y = orthogonally_separable()
    net = train_two_layer(X, y, width=30, scale=1e-4, steps=800, step=0.5).network
    found = alignment(net, X, y)
    assert found.third_to_first < 1e-2 and found.close > 0.9
    assert found.limit.kind == "heuristic" and len(found.limit.violated) == 2


def test_constructed_points_meet_the_conditions():
    for seed in range(20):
        X, y = orthogonally_separable(30, n_features=4, balanced=True, random_state=seed)
        limit, vectors = two_layer_limit(X, y), class_margins(X, y)
        net = limit.neurons()
        assert (y * net(X)).min() == pytest.approx(1)
        best = margin_certificate(net, X, y)
        assert (
            best.stationarity < 1e-10
            and best.complementarity < 1e-10
            and best.degree == pytest.approx(2)
        )
        named = vectors.alpha / np.where(y > 0, limit.positive_norm, limit.negative_norm)
        assert margin_certificate(net, X, y, multipliers=named).stationarity < 1e-10


@pytest.mark.parametrize("depth", [2, 3])
def test_residuals_of_the_conditions_follow_their_definition(depth):
    """Weights scaled to smallest margin 1, and derivatives by autograd: an independent route."""
    rng = np.random.default_rng(depth)
    sizes = [2, *[3] * (depth - 1), 1]
    weights = [torch.tensor(np.abs(rng.standard_normal((m, n)))) for n, m in pairwise(sizes)]
    X, multipliers = torch.tensor(np.abs(rng.standard_normal((5, 2)))), rng.uniform(size=5)

    def outputs(parts):
        a = X
        for W in parts[:-1]:
            a = torch.relu(a @ W.T)
        return (a @ parts[-1].T)[:, 0]

    network = ReluNetwork.from_layers([(W.numpy(), np.zeros(len(W))) for W in weights])
    found = margin_certificate(network, X.numpy(), np.ones(5), multipliers=multipliers)
    length = float(torch.cat([W.reshape(-1) for W in weights]).norm())
    least = float(outputs(weights).min())
    assert found.degree == pytest.approx(depth)
    assert found.margin == pytest.approx(least / length**depth)

    scaled = [(least ** (-1 / depth) * W).requires_grad_() for W in weights]
    margins = outputs(scaled)
    assert float(margins.detach().min()) == pytest.approx(1)
    slopes = torch.autograd.grad(margins @ torch.tensor(multipliers), scaled)
    theta, pull = (torch.cat([p.detach().reshape(-1) for p in parts]) for parts in (scaled, slopes))
    assert found.stationarity == pytest.approx(float((theta - pull).norm() / theta.norm()))
    slack = margins.detach().numpy() - 1
    assert found.complementarity == pytest.approx((multipliers * slack).max() / float(theta.norm()) ** 2)

    larger = ReluNetwork.from_layers([(5 * W.numpy(), np.zeros(len(W))) for W in weights])
    best, again = (margin_certificate(net, X.numpy(), np.ones(5)) for net in (network, larger))
    assert best.stationarity == pytest.approx(again.stationarity)
    assert best.margin == pytest.approx(again.margin)
    assert best.stationarity <= found.stationarity or best.complementarity <= found.complementarity


def test_the_conditions_hold_better_the_longer_it_is_trained(trained):
    residuals = [margin_certificate(net, X2, Y2).stationarity for net in trained.path[5::15]]
    assert (np.diff(residuals) < 0).all() and residuals[-1] < 1e-3


def test_certificates_of_modules_and_networks_agree(trained):
    import torch

    net = trained.network.network()
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 12, bias=False), torch.nn.ReLU(), torch.nn.Linear(12, 1, bias=False)
    ).double()
    with torch.no_grad():
        module[0].weight.copy_(torch.from_numpy(trained.network.W))
        module[2].weight.copy_(torch.from_numpy(trained.network.a[None]))
    ours, theirs = margin_certificate(net, X2, Y2), margin_certificate(module, X2, Y2)
    assert ours.stationarity == pytest.approx(theirs.stationarity, rel=1e-6)
    assert ours.margin == pytest.approx(theirs.margin, rel=1e-9)


def test_certificates_of_deeper_networks_have_their_degree():
    rng = np.random.default_rng(0)
    layers = [(np.abs(rng.standard_normal(s)), np.zeros(s[0])) for s in ((3, 2), (3, 3), (1, 3))]
    X = np.abs(rng.standard_normal((4, 2)))
    found = margin_certificate(ReluNetwork.from_layers(layers), X, np.ones(4))
    assert found.degree == pytest.approx(3) and 0 < found.stationarity < 1
    shifted = [(W, b + 1) for W, b in layers]
    with pytest.raises(ValueError, match="not homogeneous"):
        margin_certificate(ReluNetwork.from_layers(shifted), X, np.ones(4))
    with pytest.raises(ValueError, match="misclassifies 4 of 4"):
        margin_certificate(ReluNetwork.from_layers(layers), X, -np.ones(4))


def test_no_invariant_is_broken_on_separable_data():
    X, y = orthogonally_separable(100, n_features=6)
    watch = InvariantMonitor(None, X, y, strict=True)
    for net in train_two_layer(X, y, width=20, steps=600, record=600, step=0.1).path:
        watch.step(net)
    assert watch.steps == 601 and watch.violations == []


def test_invariants_break_on_other_data():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.choice([-1, 1], 60)
    watch = InvariantMonitor(None, X, y, balance=np.inf)
    for net in train_two_layer(X, y, width=20, scale=0.1, steps=600, record=600, step=0.1).path:
        watch.step(net)
    assert any(violation.invariant == "activity" for violation in watch.violations)


def test_the_derivative_of_the_squared_balance_has_a_factor_two():
    """Equation B.28 prints d(a^2)/dt without the factor 2; the balance itself holds all the same."""
    X, y = orthogonally_separable(20, n_features=4)
    net = balanced_neurons(1, 4, scale=0.5, signs=[1], random_state=3)
    slopes = 0.5 * y  # near zero output: -l'(0) y
    rate = (slopes * np.maximum(X @ net.W[0], 0)).sum()  # da/dt
    step = 1e-6
    change = ((net.a[0] + step * rate) ** 2 - net.a[0] ** 2) / step
    assert change == pytest.approx(2 * net.a[0] * rate, rel=1e-4)
    assert change != pytest.approx(net.a[0] * rate, rel=0.1)


def test_the_printed_probability_is_not_that_of_fitting_both_classes():
    """One dimension: a neuron serves a class if sign and side agree, with chance 1/4 each."""
    X, y, width, runs = np.array([[1.0], [-1.0]]), np.array([1, -1]), 4, 150
    fitted, alive = 0, 0
    for seed in range(runs):
        start = balanced_neurons(width, 1, scale=1e-2, random_state=seed)
        outputs = y * train_two_layer(X, y, start=start, steps=150, record=1, step=0.5).network(X)
        fitted += bool((outputs > 0.1).all())
        alive += bool((outputs > 0.1).any())
    some, both = TwoLayerLimit.probability(width)
    error = 3 * np.sqrt(0.25 / runs)
    assert some == 1 - 2.0**-4 and alive / runs >= some - error
    assert both <= fitted / runs + error
    assert fitted / runs < some - error  # so the printed number is not a bound for both classes
    assert fitted / runs == pytest.approx(1 - 2 * 0.75**width + 0.5**width, abs=error)


def test_one_class_alone():
    limit = two_layer_limit(X2[:3], Y2[:3])
    assert not limit.negative.any() and limit.group_ratio == np.inf and len(limit.neurons().a) == 1
    assert limit.violated == ("there are no negative samples",)
    net = train_two_layer(X2[:3], Y2[:3], width=12, steps=3000, step=0.5).network
    points = np.random.default_rng(0).standard_normal((50, 2))
    assert net(points) / net.squared_norm == pytest.approx(limit(points), abs=5e-3)


def test_limits_of_unusual_data():
    limit = two_layer_limit([[3.0, 4.0], [-3.0, -4.0]], [1, -1])
    assert limit.kind == "heuristic" and len(limit.violated) == 2  # one sample does not span the plane
    assert two_layer_limit(X2, Y2).violated == ()
    assert limit.positive == pytest.approx([0.6, 0.8]) and limit.negative == pytest.approx([-0.6, -0.8])
    assert two_layer_limit(X2 + 10, Y2).violated[0] == "the samples are not orthogonally separable"
    with pytest.raises(ValueError, match="hull of the positive samples"):
        two_layer_limit([[1.0], [-1.0]], [1, 1])
    with pytest.raises(ValueError, match="width must be"):
        limit.probability(0)


def test_neurons_of_other_networks_are_refused():
    with pytest.raises(ValueError, match="two-layer network with one output"):
        Neurons.of(ReluNetwork.from_layers([(np.eye(2), np.zeros(2))]))
    with pytest.raises(ValueError, match="without offsets"):
        Neurons.of(ReluNetwork.from_layers([(np.eye(2), np.ones(2)), (np.ones((1, 2)), np.zeros(1))]))
    with pytest.raises(ValueError, match="W must be"):
        Neurons(np.ones((2, 2)), np.ones(3))


def test_the_estimator_is_one_of_scikit_learn():
    import warnings

    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(TwoNeuronMaxMargin())


def test_the_estimator_is_the_limit_of_training():
    X, y = orthogonally_separable(100, n_features=4)
    points = np.random.default_rng(0).standard_normal((500, 4))
    values = two_layer_limit(X, y)(points)
    clear = values != 0
    assert (TwoNeuronMaxMargin().fit(X, y).predict(points)[clear] == np.sign(values[clear])).all()


def test_samples_that_both_neurons_miss_and_classes_without_a_margin():
    X, y = orthogonally_separable(60, n_features=4)
    model = TwoNeuronMaxMargin().fit(X, y)
    points = np.random.default_rng(0).standard_normal((500, 4))
    values = points @ model.coef_.T
    missed = (values < 0).all(axis=1)
    assert missed.any()
    assert (
        model.predict(points[missed]) == np.where(values[missed, 1] > values[missed, 0], 1, -1)
    ).all()
    # Around zero: the derivative of |w|^2 + C sum xi^2 vanishes, in units of the largest entry.
    around = 3 * np.random.default_rng(1).standard_normal((20, 2))
    soft = TwoNeuronMaxMargin(slack_price=0.7).fit(np.vstack([around, X2[:3]]), [-1] * 20 + [1] * 3)
    w, unit = soft.coef_[0], np.abs(around).max()
    slack = np.maximum(1 - around @ w, 0)
    np.testing.assert_allclose(unit**2 * w, 0.7 * slack @ around, atol=1e-6)
    assert np.isnan(soft.margins_[0]) and np.isfinite(soft.margins_[1])


def test_negative_multipliers_are_refused_and_modules_stay_as_they_were():
    X, y = np.array([[2.0, 1.0], [1.0, 2.0], [-1.0, 0.0]]), [1, 1, -1]
    neurons = two_layer_limit(X, y).neurons()
    with pytest.raises(ValueError, match="none negative"):
        margin_certificate(neurons, X, y, multipliers=[-1.0, 1.0, 1.0])
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 2, bias=False), torch.nn.Dropout(0.9), torch.nn.ReLU(),
        torch.nn.Linear(2, 1, bias=False),
    ).double()  # fmt: skip
    with torch.no_grad():
        module[0].weight.copy_(torch.as_tensor(neurons.W))
        module[3].weight.copy_(torch.as_tensor(neurons.a[None]))
    assert margin_certificate(module, X, y).stationarity < 1e-9  # dropout is off for the certificate
    assert module[1].training
