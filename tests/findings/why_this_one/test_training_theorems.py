"""What an audit says about why training chose this network."""

import gzip
import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import pindown as pn
from pindown import ReluNetwork
from pindown._audit import audit
from pindown.bias import empirical_ntk, kernel_alignment, max_margin, two_layer_limit
from pindown.bias.two_layer import margin_certificate, train_two_layer

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[4] / "shared"))
CODES = [f"BIAS-0{i}" for i in range(1, 6)]
PATIENT = 300.0


def statuses(finding):
    return {hypothesis.text: hypothesis.status for hypothesis in finding.hypotheses}


@pytest.fixture(scope="module")
def orthants():
    """Orthogonally separable rows: one class in the positive orthant, one in the negative."""
    rng = np.random.default_rng(0)
    signs = np.where(np.arange(40) % 2, 1.0, -1.0)
    return (np.abs(rng.standard_normal((40, 4))) + 0.1) * signs[:, None], signs


@pytest.fixture(scope="module")
def collapsed(orthants):
    """A two-layer network that gradient flow has brought near its limit, with its start."""
    run = train_two_layer(*orthants, width=20, steps=3000)
    return run.path[0].network(), run.network.network()


def test_a_two_layer_network_near_its_limit(orthants, collapsed):
    X, y = orthants
    start, net = collapsed
    result = audit(net, X, y, only=CODES, initial=start, budget=PATIENT)
    theory = result["BIAS-01"]
    assert theory.number.value == 2 and "two neurons" in theory.verdict
    assert statuses(theory)["inputs are orthogonally separable"] == "checked"
    assert statuses(theory)["the network has ReLUs"] == "violated"
    assert "two-layer" not in theory.verdict.split(";")[1]
    margin = result["BIAS-02"]
    limit = two_layer_limit(X, y)
    size = sum(np.sum(W**2) for W, _ in net.layers)
    wanted = (y * net(X)[:, 0]).min() / size / (y * limit(X)).min()
    assert margin.number.value == pytest.approx(wanted) and 0.95 < wanted <= 1.001
    assert margin.number.kind == limit.kind == "heuristic"  # supports do not span, which is named
    assert any("span" in text and s == "violated" for text, s in statuses(margin).items())
    assert dict(margin.table.rows)["neurons within cosine 0.9 of the prediction"] > 0.5
    assert result["BIAS-03"].verdict == "orthogonally separable: inputs, layer 1"
    assert result["BIAS-03"].number.value == 0
    rank = result["BIAS-04"]
    assert rank.verdict == "layer 1 has 2 singular values above 1% of the largest, predicted 2"
    kernel = result["BIAS-05"]
    assert kernel.verdict.startswith("rich: the kernel moved by")
    assert statuses(kernel)["the weights before training were given"] == "checked"
    assert "network before training" in result.given


def test_the_prediction_is_missed_by_a_network_that_was_trained_otherwise(orthants):
    X, y = orthants
    W = np.abs(np.random.default_rng(1).standard_normal((12, 4)))
    W[::2] *= -1
    a = np.where(np.arange(12) % 2, 1.0, -1.0)
    net = ReluNetwork.from_layers([(W, np.zeros(12)), (a[None], [0.0])])
    result = audit(net, X, y, only=CODES, budget=PATIENT)
    assert result["BIAS-01"].number.value == 2  # the data and the architecture are the same
    assert result["BIAS-02"].number.value < 0.9
    assert result["BIAS-04"].verdict.startswith("layer 1 has 4 singular values")
    assert "cannot be said" in result["BIAS-05"].verdict
    assert [s for t, s in statuses(result["BIAS-05"]).items() if "not given" in t] == ["assumed"]


def test_a_linear_classifier_beside_the_largest_margin(orthants):
    X, y = orthants
    best = max_margin(np.c_[X, np.ones(40)], y)
    net = ReluNetwork.from_layers([(best.w[None, :4], best.w[4:])])
    finding = audit(net, X, y, only=CODES)["BIAS-02"]
    assert finding.number.value == pytest.approx(1) and finding.number.kind == "exact"
    assert dict(finding.table.rows)["angle to the largest-margin direction, degrees"] < 1e-4
    turned = best.w + 0.3 * np.array([1.0, -1.0, 0.0, 0.0, 0.0]) * np.abs(best.w).max()
    other = ReluNetwork.from_layers([(turned[None, :4], turned[4:])])
    worse = audit(other, X, y, only=CODES)
    reached = (y * (np.c_[X, np.ones(40)] @ turned)).min() / np.linalg.norm(turned)
    assert worse["BIAS-02"].number.value == pytest.approx(reached / best.margin)
    assert worse["BIAS-04"].status == worse["BIAS-05"].status == "not applicable"


def test_biases_of_the_first_layer_are_weights_of_a_constant_input():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 3))
    y = np.sign(X[:, 0] * X[:, 1])
    neurons = train_two_layer(np.c_[X, np.ones(24)], y, width=30, scale=0.1, steps=2000).network
    net = ReluNetwork.from_layers([(neurons.W[:, :3], neurons.W[:, 3]), (neurons.a[None], [0.0])])
    assert (y * net(X)[:, 0]).min() > 0
    result = audit(net, X, y, only=CODES)
    assert result["BIAS-01"].verdict.startswith("homogeneous networks go to stationary points")
    wanted = margin_certificate(neurons, np.c_[X, np.ones(24)], y)
    assert result["BIAS-02"].number.value == pytest.approx(wanted.stationarity, rel=1e-6)
    assert wanted.stationarity < 0.9
    broken = ReluNetwork.from_layers([net.layers[0], (neurons.a[None], [1e-3])])
    finding = audit(broken, X, y, only=CODES)["BIAS-01"]
    assert finding.number.value == 0
    assert finding.verdict == (
        "no theorem here applies, because the network is not homogeneous in its parameters: 2 of 2 "
        "layers have biases that are not zero"
    )


def test_several_classes_and_mistakes_have_no_prediction():
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((8, 4)), np.zeros(8)), (rng.standard_normal((3, 8)), np.zeros(3))]
    net, X = ReluNetwork.from_layers(layers), rng.standard_normal((50, 4))
    y = net(X).argmax(axis=1)
    right = audit(net, X, y, only=CODES)
    assert right["BIAS-01"].number.value == 1  # homogeneous networks with any number of outputs
    assert "for one output only and there are 3" in right["BIAS-02"].verdict
    sorted_outputs = np.sort(net(X), axis=1)
    assert right["BIAS-02"].number.value == pytest.approx(
        (sorted_outputs[:, -1] - sorted_outputs[:, -2]).min()
    )
    size = np.sqrt(sum(np.sum(W**2) for W, _ in net.layers))
    normalised = dict(right["BIAS-02"].table.rows)["normalised margin"]
    assert normalised == pytest.approx(right["BIAS-02"].number.value / size**2)
    y[0] = (y[0] + 1) % 3
    wrong = audit(net, X, y, only=CODES)
    assert "1 of 50 rows is misclassified" in wrong["BIAS-01"].verdict
    assert wrong["BIAS-02"].number.value < 0


def test_pairs_of_the_wrong_sign_are_counted():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.1]])
    y = np.array([1, 1, 0, 0])
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[1.0, 1.0]], [0])])
    finding = audit(net, X, y, only=["BIAS-03"])["BIAS-03"]
    # Within: (0, 1) orthogonal and (2, 3) negative, both ways, of 8. Between: 5 - 2 of 4 are positive.
    inputs, layer = finding.table.rows
    assert inputs == ("inputs", "50.0%", "75.0%") and layer[1:] == inputs[1:]
    assert finding.number.value == 0.75 and finding.number.kind == "exact"


def test_regression_and_labels_of_test_data_alone():
    rng = np.random.default_rng(0)
    net = ReluNetwork.from_layers([(rng.standard_normal((5, 2)), np.ones(5)), (np.ones((1, 5)), [0.0])])
    X = rng.standard_normal((30, 2))
    values = audit(net, X, X[:, 0] + 0.5, only=CODES)
    assert "the targets are values, not classes" in str(values["BIAS-01"])
    assert values["BIAS-02"].status == values["BIAS-03"].status == "not applicable"
    assert values["BIAS-05"].answered
    only_test = audit(net, X, test=(X, np.sign(X[:, 0])), only=CODES)
    assert {f.code for f in only_test.findings if f.answered} == {"BIAS-04"}  # weights need no labels
    assert "no prediction applies, because no labelled training data" in only_test["BIAS-04"].verdict
    assert "only the test data have labels" in only_test["BIAS-01"].verdict


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1, 2])
def test_one_row_and_one_class(n):
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[1.0, 1.0]], [0])])
    for y in (np.ones(n), np.zeros(n)):
        result = audit(net, np.eye(2)[:n], y, only=CODES)
        assert {f.status for f in result.findings} <= {"answered", "not applicable"}


def test_the_kernel_of_the_finding_is_the_kernel():
    rng = np.random.default_rng(0)
    net = ReluNetwork.from_layers([(rng.standard_normal((9, 3)), np.ones(9)), (np.ones((1, 9)), [0.0])])
    X = rng.standard_normal((40, 3))
    y = np.sign(X[:, 0])
    kernel = audit(net, X, y, only=CODES)["BIAS-05"]
    wanted = kernel_alignment(empirical_ntk(net, X), np.outer(y, y))
    assert kernel.number.value == pytest.approx(wanted) and kernel.number.kind == "exact"
    start = ReluNetwork.from_layers([(0.5 * W, 0.5 * b) for W, b in net.layers])
    moved = dict(audit(net, X, y, only=["BIAS-05"], initial=start)["BIAS-05"].table.rows)
    before, after = empirical_ntk(start, X), empirical_ntk(net, X)
    change = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert moved["relative change since the start"] == pytest.approx(change)
    assert moved["relative movement of the weights"] == pytest.approx(1.0)
    still = audit(net, X, y, only=CODES, initial=net)["BIAS-05"]
    assert still.verdict.startswith("lazy: the kernel moved by 0%")


@pytest.mark.parametrize("seed", range(3))
def test_ranks_are_at_most_the_directions_and_shares_at_most_all(seed):
    rng = np.random.default_rng(seed)
    sizes = [2, 3, 5, 7, 11]  # orthogonal weights: more directions count alike than in random ones
    turns = [np.linalg.qr(rng.standard_normal((n, n)))[0][:, :m] for m, n in pairwise(sizes)]
    net = ReluNetwork.from_layers([(W, np.zeros(len(W))) for W in turns])
    finding = audit(net, only=CODES)["BIAS-04"]
    for (_, _, rank, above, random, _), W in zip(finding.table.rows, turns, strict=True):
        assert above == min(W.shape)
        assert random < rank <= above  # the ranks themselves are not cut down to the random ones
        assert rank == pytest.approx(above, rel=1e-9)
    assert finding.number.value == 1.0 and finding.number.text == "100%"


def test_a_share_below_one_is_the_ratio_of_the_ranks():
    low = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]) + 1e-3 * np.eye(3, 2)
    net = ReluNetwork.from_layers([(low, np.zeros(3)), (np.eye(3), np.zeros(3))])
    finding = audit(net, only=CODES)["BIAS-04"]
    values = np.linalg.svd(low, compute_uv=False)
    shares = values / values.sum()
    rank, random = np.exp(-np.sum(shares * np.log(shares))), finding.table.rows[0][4]
    assert finding.number.value == pytest.approx(rank / random, rel=1e-6) and rank < 0.6 * random


def test_stored_sparse_and_far_out_weights_are_not_measured():
    rng = np.random.default_rng(0)
    W = np.zeros((400, 300))
    W[np.arange(400), rng.integers(300, size=400)] = rng.standard_normal(400)
    sparse = ReluNetwork.from_layers([(sp.csr_array(W), np.zeros(400)), (np.ones((1, 400)), [0.0])])
    X = rng.standard_normal((20, 300))
    found = audit(sparse, X, np.sign(sparse(X)[:, 0]).clip(0), only=CODES)
    if found["BIAS-01"].number.value:
        assert "stored sparse" in found["BIAS-02"].verdict
    assert "unrolled" in found["BIAS-05"].verdict
    layers = [(1e150 * rng.standard_normal((3, 2)), np.zeros(3)), ([[1e150, -1e150, 1e150]], [0.0])]
    huge, Z = ReluNetwork.from_layers(layers), 1e-5 * rng.standard_normal((9, 2))
    result = audit(huge, Z, (huge(Z)[:, 0] > 0).astype(int), only=CODES)
    assert not [f.verdict for f in result.findings if f.status == "error"]


def test_an_initial_network_must_fit():
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[1.0, 1.0]], [0])])
    with pytest.raises(ValueError, match="same network before training"):
        audit(net, initial=net[:1])
    with pytest.raises(TypeError, match="initial takes a Model, a ReluNetwork"):
        audit(net, initial=np.eye(2))


def test_time_is_kept():
    rng = np.random.default_rng(0)
    shapes = [(600, 300), (600, 600), (600, 600), (10, 600)]
    net = ReluNetwork.from_layers([(rng.standard_normal(s) / 20, np.zeros(s[0])) for s in shapes])
    X = rng.standard_normal((3000, 300))
    y = rng.integers(10, size=3000)
    start = time.process_time()
    result = audit(net, X, y, only=CODES, budget=0.05)
    assert time.process_time() - start < 5.0
    assert all(f.status in ("answered", "not run") for f in result.findings)
    assert result["BIAS-05"].status == "not run"


def test_collision_avoidance_network():
    path = SHARED / "models/acasxu_1_1.onnx"
    if not path.exists():
        pytest.skip("the shared models are not here")
    net = pn.load(path).relu_network()
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 5))
    result = audit(net, X, net(X).argmax(axis=1), only=CODES, budget=PATIENT)
    assert all(f.answered and f.reading and f.scale and f.number for f in result.findings)
    assert "7 of 7 layers have biases" in result["BIAS-01"].verdict
    assert len(result["BIAS-04"].table.rows) == 7 and len(result["BIAS-03"].table.rows) == 7


def test_digits_network():
    model, data = SHARED / "models/mnist_256x4.onnx.gz", SHARED / "data/mnist/t10k-images-idx3-ubyte.gz"
    if not (model.exists() and data.exists()):
        pytest.skip("the shared models and data are not here")
    images = np.frombuffer(gzip.decompress(data.read_bytes()), np.uint8, offset=16)[: 784 * 500]
    labels = gzip.decompress((SHARED / "data/mnist/t10k-labels-idx1-ubyte.gz").read_bytes())
    images, y = images.reshape(-1, 784) / 255, np.frombuffer(labels, np.uint8, offset=8)[:500]
    result = audit(pn.load(model), images, y, only=CODES, budget=PATIENT)
    assert all(f.answered for f in result.findings)
    rows = dict(result["BIAS-05"].table.rows)
    # Training has turned the kernel towards the classes, and away from those of fresh networks.
    assert rows["alignment with the targets"] > 1.5 * rows["of fresh networks with the targets"]
    assert rows["with fresh networks"] < rows["of fresh networks with each other"]


def test_one_target_for_all_rows_has_no_alignment():
    rng = np.random.default_rng(0)
    net = ReluNetwork.from_layers([(rng.standard_normal((9, 3)), np.ones(9)), (np.ones((1, 9)), [0.0])])
    found = audit(net, rng.standard_normal((6, 3)), np.ones(6), only=CODES)["BIAS-05"]
    assert found.status == "not applicable" and "targets that are all the same" in found.verdict


def test_a_bias_is_named_where_the_margin_counts_it():
    X, y = np.array([[2.0], [4.0]]), [0, 1]
    biased = ReluNetwork.from_layers([([[1.0]], [-3.0])])
    found = audit(biased, X, y, only=CODES)["BIAS-02"]
    # With the constant input the rows are (2, 1) and (4, 1), and the largest margin is 1 / sqrt(10).
    rows = dict(found.table.rows)
    assert "one more input that is always 1" in found.reading
    assert rows["largest margin (proved)"] == pytest.approx(1 / np.sqrt(10))
    plain = audit(ReluNetwork.from_layers([([[1.0]], [0.0])]), X - 3, y, only=CODES)["BIAS-02"]
    assert "always 1" not in plain.reading and plain.number.value == pytest.approx(1.0)
