"""Clusters of starts, niceness, noise on mixtures, and the mixture bound as corrected and as printed."""

import math

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.affine import angle
from pindown.guarantees.bounds import (
    ClusterPriors,
    WeightList,
    clusters_bound,
    mixture_bound,
    mixture_noise_scale,
    mixture_order,
    niceness,
)
from pindown.guarantees.bounds.priors import N_ANGLES, cone_sample
from pindown.guarantees.bounds.relative_entropy import mixture_exponent
from pindown.guarantees.bounds.rescaled_weights import representative
from pindown.guarantees.bounds.weight_noise import norm_level, perturbation_bound


def random_network(rng, shapes=((6, 3), (6, 6), (2, 6)), scale=0.5):
    return WeightList("given", tuple(scale * rng.standard_normal(s) for s in shapes))


def balanced(rng, beta, shapes):
    made = representative(random_network(rng, shapes), "layers")
    factor = beta / made.geometric_norm
    return WeightList("given", tuple(W * factor for W in made.matrices))


def test_cluster_has_the_norm_and_the_angle_and_is_reproducible():
    start = random_network(np.random.default_rng(0))
    priors = ClusterPriors(start, size=5, seed=3)
    for index in (1, 40, N_ANGLES):
        cluster = priors.cluster(index)
        assert len(cluster) == 5
        for each in cluster:
            assert np.linalg.norm(each.vector) == pytest.approx(np.linalg.norm(start.vector))
            assert angle(each.vector, start.vector) == pytest.approx(0.01 * index, abs=1e-9)
    again = ClusterPriors(start, size=5, seed=3).cluster(40)
    assert all((a.vector == b.vector).all() for a, b in zip(priors.cluster(40), again, strict=True))
    inside = ClusterPriors(start, size=50, within="cone").cluster(100)
    assert 0 < min(angle(b.vector, start.vector) for b in inside) < 0.5


def test_nearest_angle():
    rng = np.random.default_rng(1)
    start = random_network(rng)
    priors = ClusterPriors(start)
    for theta in (0.123, 1.0, 2.7):
        turned = start.shifted(2.0 * cone_sample(start.vector, theta, rng))
        assert abs(0.01 * priors.chosen(turned) - theta) <= 0.005 + 1e-9
    assert priors.index(0.0) == 1 and priors.index(9.0) == N_ANGLES


def test_niceness():
    rng = np.random.default_rng(2)
    net, other = random_network(rng), random_network(rng)
    X = rng.standard_normal((20, 3))
    assert niceness(net, [net, net], X).gamma == 0.0
    found = niceness(net, [other], X)
    ratios = [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(other(X), net(X), strict=True)]
    assert found.eps == pytest.approx(max(ratios))
    scaled = [WeightList("s", (*w.matrices[:-1], 7 * w.matrices[-1])) for w in (net, other)]
    assert niceness(scaled[0], scaled[1:], X).eps == pytest.approx(found.eps)
    assert found.gaps[0] <= found.gamma
    moves = [np.linalg.norm(a - b) for a, b in zip(other(X), net(X), strict=True)]
    np.testing.assert_allclose(niceness(net, [other, net], X).gaps, [max(moves), 0.0])
    dead = WeightList("zero", tuple(0 * W for W in net.matrices))
    assert niceness(dead, [net], X).gamma == math.inf


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_noise_on_a_mixture_moves_outputs_rarely(depth):
    rng = np.random.default_rng(depth)
    shapes = ((8, 4), *[(8, 8)] * (depth - 2), (3, 8))
    nets = [balanced(rng, beta, shapes) for beta in (0.8, 1.3, 2.0)]
    X = rng.standard_normal((10, 4))
    B, gamma, p = np.linalg.norm(X, axis=1).max(), 1.0, 0.3
    sigma = mixture_noise_scale(
        [n.geometric_norm for n in nets], gamma, depth=depth, side=8, input_norm=B, failure=p
    )
    far = 0
    for _ in range(200):
        net = nets[rng.integers(3)]
        moved = net.shifted(net.vector + sigma * rng.standard_normal(net.vector.size))
        far += np.linalg.norm(moved(X) - net(X), axis=1).max() > gamma
    assert far / 200 <= p


@pytest.mark.parametrize(("margin", "binds"), [(0.5, "margin"), (80.0, "norm")])
def test_noise_on_a_mixture_is_as_large_as_its_lemmas_allow(margin, binds):
    """All layers move by t with probability 1 - p; then outputs move by the margin, or t is a d-th."""
    betas, d, h, B, p = [0.7, 1.2, 1.9], 3, 9, 2.5, 0.2
    common = {"depth": d, "side": h, "input_norm": B, "failure": p}
    sigma = mixture_noise_scale(betas, margin, **common)
    t = sigma * norm_level(h, h, p / d, variant="as_printed")
    if binds == "norm":
        assert t == pytest.approx(min(betas) / d)
    else:
        moves = [perturbation_bound([b] * d, [t] * d, B, variant="as_printed") for b in betas]
        assert max(moves) == pytest.approx(margin)
    printed = mixture_noise_scale(betas, margin, variant="as_printed", **common)
    logs = [math.log(2 * d * h / p), math.log(2 * d * h * 3 / p)]  # at equal weights only k in the log
    assert printed / sigma == pytest.approx(math.sqrt(logs[0] / logs[1]))
    favoured = mixture_noise_scale(
        betas, margin, variant="as_printed", weights=[0.1, 0.1, 0.8], **common
    )
    if binds == "margin":
        assert favoured / printed == pytest.approx(1 / (3 * 0.8))


def test_printed_noise_is_too_large_for_a_rare_component_of_large_norm():
    """The second component has weight 1e-4: its own noise bound breaks when it is the one drawn."""
    rng = np.random.default_rng(3)
    shapes = ((8, 4), (3, 8))
    small, large = balanced(rng, 0.1, shapes), balanced(rng, 200.0, shapes)
    betas, weights = [small.geometric_norm, large.geometric_norm], [1 - 1e-4, 1e-4]
    X = rng.standard_normal((10, 4))
    B, gamma = np.linalg.norm(X, axis=1).max(), 0.1
    common = {"depth": 2, "side": 8, "input_norm": B, "failure": 0.1}
    printed = mixture_noise_scale(betas, gamma, weights=weights, variant="as_printed", **common)
    ours = mixture_noise_scale(betas, gamma, **common)

    def share(sigma):
        draws = [
            large.shifted(large.vector + sigma * rng.standard_normal(large.vector.size))
            for _ in range(100)
        ]
        return np.mean([np.linalg.norm(d(X) - large(X), axis=1).max() > gamma for d in draws])

    assert share(printed) > 0.9
    assert share(ours) <= 0.1


def setting(rng, step=0.05):
    start = random_network(rng)
    priors = ClusterPriors(start, size=4, seed=0)
    trained = start.shifted(start.vector + step * rng.standard_normal(start.vector.size))
    starts = priors.cluster(priors.chosen(trained))
    cluster = [
        trained.shifted(trained.vector + 1e-6 * rng.standard_normal(start.vector.size)) for _ in starts
    ]
    X = rng.standard_normal((200, 3))
    return trained, cluster, starts, X, trained(X).argmax(axis=1)


def test_printed_statement_is_below_its_own_proof_by_the_factor_eight():
    """Where the margin limits the noise, gamma for gamma / 8 makes the complexity 8 times smaller."""
    trained, cluster, starts, X, y = setting(np.random.default_rng(4))
    printed = mixture_bound(trained, cluster, starts, X, y, margin=1e-3, variant="as_printed")
    assert printed.kind == "heuristic"
    assert any("eighth" in a.text and a.status == "violated" for a in printed.assumptions)
    scale, d = printed.terms["scale"], 3
    tail = math.sqrt(2 * 6 * math.log(2 * d * 6 / (0.05 / N_ANGLES)))
    B = np.linalg.norm(X, axis=1).max()
    beta = printed.terms["beta"]
    proof = 1e-3 / 8 / (math.e**2 * d * B * beta ** (d - 1)) / tail
    assert scale == pytest.approx(8 * proof, rel=1e-6)
    distances = np.array(
        [np.linalg.norm(cluster[int(printed.terms["network"])].vector - b.vector) for b in starts]
    )
    ratio = math.sqrt(mixture_exponent(distances, proof) / mixture_exponent(distances, scale))
    assert ratio == pytest.approx(8, rel=0.01)


def test_corrected_is_vacuous_where_the_sample_is_not_nice():
    trained, cluster, starts, X, y = setting(np.random.default_rng(5))
    far = [net.shifted(net.vector + 1.0) for net in cluster]
    gap = niceness(trained, far, X).gaps.min()
    assert mixture_bound(trained, far, starts, X, y, margin=4 * gap).value == 1.0
    assert mixture_bound(trained, cluster, starts, X, y).kind == "probability"


def test_distance_is_a_plain_norm_not_its_square():
    """d_min in the grid: with squares, a distance of 0.01 would count as 1e-4."""
    trained, cluster, starts, X, y = setting(np.random.default_rng(6))
    nearest = min(
        np.linalg.norm(representative(c, "layers").vector - representative(b, "layers").vector)
        for c in cluster
        for b in starts
    )
    assert nearest**2 < 0.9 * nearest
    inside = mixture_bound(trained, cluster, starts, X, y, margin=1e9, least_distance=0.95 * nearest)
    squared = mixture_bound(trained, cluster, starts, X, y, margin=1e9, least_distance=0.95 * nearest**2)
    assert squared.terms["priors"] > inside.terms["priors"]  # it would ask for a larger grid


def test_cluster_costs_at_most_its_logarithm():
    trained, cluster, starts, X, y = setting(np.random.default_rng(7))
    many = mixture_bound(trained, cluster, starts, X, y, margin=0.5)
    single = min(mixture_bound(trained, cluster, [b], X, y, margin=0.5).formula_value for b in starts)
    assert many.formula_value <= single + math.sqrt(math.log(len(starts)) / (len(X) - 1)) + 1e-9


def test_refuses():
    trained, cluster, starts, X, y = setting(np.random.default_rng(8))
    other = random_network(np.random.default_rng(9), ((5, 3), (2, 5)))
    for change, words in (
        ({"variant": "as_printed"}, "takes a margin"),
        ({"variant": "other"}, "variant must"),
        ({"delta": 2.0}, "delta must"),
    ):
        with pytest.raises(ValueError, match=words):
            mixture_bound(trained, cluster, starts, X, y, **change)
    with pytest.raises(ValueError, match="shapes"):
        mixture_bound(trained, [other], starts, X, y)
    with pytest.raises(ValueError, match="at least one"):
        niceness(trained, [], X)
    with pytest.raises(ValueError, match="index must"):
        ClusterPriors(trained).cluster(315)
    with pytest.raises(ValueError, match="not zero"):
        angle([0.0], [1.0])
    with pytest.raises(ValueError, match="betas must"):
        mixture_noise_scale([], 1.0, depth=2, side=3, input_norm=1.0, failure=0.1)


def test_models_of_any_kind_are_bounded_as_their_weights_are():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    matrices = [(rng.normal(size=(4, 3)), rng.normal(size=(2, 4))) for _ in range(3)]
    nets = [ReluNetwork.from_layers([(W, np.zeros(len(W))) for W in each]) for each in matrices]
    lists = [WeightList("given", each) for each in matrices]
    y = nets[0](X).argmax(axis=1)
    ours, plain = (mixture_bound(a, [b], [c], X, y, margin=0.5) for a, b, c in (nets, lists))
    assert ours.formula_value == plain.formula_value and ours.terms == plain.terms
    assert niceness(nets[0], nets[1:], X).gamma == niceness(lists[0], lists[1:], X).gamma
    graph = nets[0].to_torch()
    assert niceness(graph, nets[1:], X).gamma == pytest.approx(niceness(lists[0], lists[1:], X).gamma)
    priors = ClusterPriors(nets[0], size=2, seed=1)
    assert priors.chosen(nets[1]) == ClusterPriors(lists[0], size=2, seed=1).chosen(lists[1])


def test_biases_are_weights_of_a_constant_input():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 2))
    nets = [
        ReluNetwork.from_layers(
            [(rng.normal(size=(3, 2)), rng.normal(size=3)), (rng.normal(size=(2, 3)), [0, 0])]
        )
        for _ in range(2)
    ]
    gap = np.linalg.norm(nets[1](X) - nets[0](X), axis=1).max()
    assert niceness(nets[0], nets[1:], X).gaps[0] == pytest.approx(gap)
    y = nets[0](X).argmax(axis=1)
    assert mixture_bound(nets[0], nets[:1], nets[1:], X, y, margin=0.1).terms["empirical risk"] < 1.0
    assert ClusterPriors(nets[0]).start.shapes == ((4, 3), (2, 4))
    with pytest.raises(ValueError, match="without biases"):
        clusters_bound(nets[0], lambda net, number: net, X, y)
    bare = ReluNetwork.from_layers(
        [(layer.weight, np.zeros_like(layer.bias)) for layer in nets[0].layers]
    )
    with pytest.raises(ValueError, match="shapes of the start"):
        ClusterPriors(bare).chosen(nets[0])


def test_the_protocol_of_clusters_is_its_steps_one_by_one():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, 3))
    start = ReluNetwork.from_layers(
        [(rng.normal(size=(4, 3)), np.zeros(4)), (rng.normal(size=(2, 4)), [0, 0])]
    )
    y, numbers = start(X).argmax(axis=1), []

    def train(net, number):
        numbers.append(number)
        moved = np.random.default_rng(number)
        return ReluNetwork.from_layers(
            [(W + 0.05 * moved.normal(size=W.shape), b) for W, b in net.layers]
        )

    found = clusters_bound(start, train, X, y, size=3, seed=2, margin=0.5)
    assert numbers == [0, 1, 2, 3]
    priors = ClusterPriors(start, 3, 2)
    starts = priors.cluster(priors.chosen(train(start, 0)))
    cluster = [train(each.network, i + 1) for i, each in enumerate(starts)]
    assert found.terms == mixture_bound(train(start, 0), cluster, starts, X, y, margin=0.5).terms


def test_the_order_is_the_printed_expression_for_the_nearest_network():
    rng = np.random.default_rng(5)
    far, near, start = (
        WeightList("given", (rng.standard_normal((4, 3)), scale * rng.standard_normal((2, 4))))
        for scale in (9.0, 1.0, 1.0)
    )
    start = near.shifted(near.vector + 0.01 * start.vector)
    d, h, m, delta = 2, 4, 500, 0.1
    norms = np.prod([np.linalg.norm(W, 2) for W in near.matrices])
    distance = np.linalg.norm(near.vector - start.vector)
    expected = (
        np.sqrt(h * np.log(2 * d * h / delta) / m) * d * 3.0 * norms ** (1 - 1 / d) * distance / 0.5
    )
    found = mixture_order([far, near], [start, far], m, margin=0.5, input_norm=3.0, delta=delta)
    assert found == 0.0  # a start is among the networks
    found = mixture_order([far, near], [start], m, margin=0.5, input_norm=3.0, delta=delta)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
