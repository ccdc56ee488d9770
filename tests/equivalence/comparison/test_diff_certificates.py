"""What `diff` says, as certificates that the checker accepts, and what it does not accept."""

import json
from itertools import pairwise

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import pindown as pn
from pindown.deadline import NEVER
from pindown.equivalence.comparison._certificates import _ahead, _fit, _forms, _gap_sets, _turned
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.errors import CertificateError
from pindown.model.from_network import model_of_network
from pindown.model.operations.operation import Interval
from pindown.relaxation.tied_models import Pairs, ReluGap, growth, summed_columns, tied
from pindown.verification import proof_files
from pindown.verification.questions import Question
from tests.verification.checking import load_checker

checker = load_checker()


def network(rng, widths=(3, 8, 7, 3)):
    return [
        ((rng.standard_normal((m, n)) / np.sqrt(n)).astype(np.float32).astype(float), np.zeros(m))
        for n, m in pairwise(widths)
    ]


def moved(rng, layers):
    """Return the same function with units in another order and scaled."""
    made, before = [], (np.arange(layers[0][0].shape[1]), np.ones(layers[0][0].shape[1]))
    for i, (W, b) in enumerate(layers):
        n = len(b)
        last = i == len(layers) - 1
        after = (np.arange(n), np.ones(n)) if last else (rng.permutation(n), rng.uniform(0.5, 2, n))
        V = W[:, before[0]] / before[1]
        made.append((V[after[0]] * after[1][:, None], b[after[0]] * after[1]))
        before = after
    return made


@pytest.fixture
def pair(tmp_path):
    """Write two networks, and return a function that compares them and checks the certificate."""

    def compared(first, second, **options):
        paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
        for path, layers in zip(paths, (first, second), strict=True):
            pn.ReluNetwork.from_layers(layers).save(path, dtype="float64")
        place = tmp_path / "proof"
        answer = pn.diff(*paths, certificate=place, **{"budget": 20.0, **options})
        lines, said = [], None
        if answer.certificate:
            models = [path.read_bytes() for path in paths]
            with np.errstate(all="ignore"):
                said = checker.check(place.read_bytes(), models, write=lines.append)
        return answer, said, lines

    return compared


BOX = (-np.ones(3), np.ones(3))


def test_the_same_function_in_another_order_is_proved_to_a_stranger(pair):
    rng = np.random.default_rng(0)
    layers = network(rng)
    answer, said, lines = pair(layers, moved(rng, layers), box=BOX)
    assert answer.verdict == "same" and said.startswith("holds: none of 6 unsafe sets")
    assert any(line.startswith("network 2: model 2, reads X_0, X_1, X_2") for line in lines)
    facts = json.loads(answer.to_json())["certificate"]
    assert facts["check"] == f"python pindown_check.py {answer.certificate} a.onnx b.onnx"
    assert "pindown_check.py" in answer.to_html()


def split(layers):
    """Return the same function, with hidden units written as two that share their weight."""
    layers = [(W.copy(), b.copy()) for W, b in layers]
    for i in range(len(layers) - 1):
        (W, b), (V, c) = layers[i : i + 2]
        which, share = np.array([0, 3]), np.array([0.25, 0.5])
        V = np.concatenate([V, V[:, which] * share / 2], axis=1)
        V[:, which] *= 1.0 - share
        W, b = (np.concatenate([each, 2 * each[which]]) for each in (W, b))
        layers[i : i + 2] = [(W, b), (V, c)]
    return layers


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("box", [True, False])
def test_units_that_were_split_are_proved_to_a_stranger(pair, turned, box):
    rng = np.random.default_rng(11)
    layers = network(rng)
    given = layers, split(layers)
    answer, said, lines = pair(*given[:: -1 if turned else 1], box=BOX if box else None, budget=200.0)
    assert answer.verdict == "same" and said is not None, answer.certificate_note
    assert said.startswith("holds: none of 6 unsafe sets" if box else "holds: the gap")
    assert any(line.startswith(f"network 1: model {2 if turned else 1}") for line in lines)


def test_columns_that_stand_for_one_unit_are_summed():
    rng = np.random.default_rng(13)
    W, places = rng.integers(-9, 9, (3, 5)).astype(float), np.array([2, 0, 2, 1, 2])
    y = rng.integers(-9, 9, 4).astype(float)
    assert (summed_columns(W, places, 4) @ y == W @ y[places]).all()


def test_the_other_network_comes_first():
    """f - g > t of outputs [f, g] is the same set in outputs [g, f]."""
    question = _turned(Question(_gap_sets((np.zeros(1), np.ones(1)), np.full(1, 0.25))), 1)
    first, second = question.unsafe
    assert first.contains([0.5], [0.0, 1.0]) and not first.contains([0.5], [1.0, 0.0])
    assert second.contains([0.5], [1.0, 0.0]) and not second.contains([0.5], [0.0, 1.0])


@pytest.mark.parametrize("turned", [False, True])
def test_of_networks_of_other_widths_rows_and_differences_are_claimed(pair, turned):
    rng = np.random.default_rng(12)
    layers = network(rng)
    other = split(layers)
    other[-1] = other[-1][0], other[-1][1] + [0.0, 1e-3, 0.0]
    given = (layers, other)[:: -1 if turned else 1]
    assert pair(*given, box=BOX)[1].startswith("violated")
    X = rng.uniform(-0.9, 0.9, (4, 3))
    options = {"data": X, "radius": 1e-3, "labels": True, "tol": 1e-2, "budget": 200.0}
    answer, said, _ = pair(*given, box=BOX, **options)
    assert answer.verdict == "same" and said.split(":")[0] in {"holds", "counted"}


def test_a_difference_is_shown_to_a_stranger(pair):
    layers = network(np.random.default_rng(1))
    other = [*layers[:-1], (layers[-1][0], layers[-1][1] + [0.0, 1e-3, 0.0])]
    answer, said, lines = pair(layers, other, box=BOX)
    assert answer.verdict == "different" and said.startswith("violated: 1 of 1")
    assert any("Y_1" in line and "Y_4" in line for line in lines)
    answer, said, _ = pair(layers, other)  # all inputs: what is claimed is about the witness
    assert answer.verdict == "different" and said.startswith("violated")


def test_rows_are_counted(pair):
    rng = np.random.default_rng(2)
    layers = network(rng)
    other = [(W + 1e-4 * rng.standard_normal(W.shape), b) for W, b in layers]
    X = rng.uniform(-0.9, 0.9, (5, 3))
    options = {"box": BOX, "data": X, "radius": 1e-3, "labels": True, "tol": 1e-2}
    answer, said, _ = pair(layers, other, **options)
    proved = answer.rows.same_label.count("proved")
    assert proved >= 3 and said.split(":")[0] in ("holds", "counted")
    # One question for the classes and one for the gap of each row, and one for the box.
    assert "unsafe sets" in said or "of 11 questions" in said


def test_what_holds_for_all_inputs_is_proved_to_a_stranger(pair, tmp_path):
    rng = np.random.default_rng(3)
    layers = network(rng)
    answer, said, lines = pair(layers, moved(rng, layers))
    assert answer.verdict == "same" and said.startswith("holds: the gap")
    assert "for all X and i = 0 to 2: |Y_i - Y_(i + 3)| <= 1e-05 (1 + |X|_2)" in lines
    claim, arrays = proof_files.unpacked((tmp_path / "proof").read_bytes())
    models = [(tmp_path / name).read_bytes() for name in ("a.onnx", "b.onnx")]
    third = {"networks": [*claim["networks"], claim["networks"][0]]}
    wide = {**arrays, "rows": np.zeros((0, 9))}
    for forged in ({"growth": 1e-19}, {"growth": -1.0}, {"growth": "x"}, {"verdict": "counted"}, third):
        data = proof_files.packed({**claim, **forged}, wide if forged is third else arrays)
        with np.errstate(all="ignore"), pytest.raises(checker.Rejected):
            checker.check(data, models, write=lambda line: None)


def test_growth_is_at_least_what_samples_show():
    rng = np.random.default_rng(6)
    layers = network(rng)
    other = [(W + 0.01 * rng.standard_normal(W.shape), b + 0.01) for W, b in layers]
    nets = [pn.ReluNetwork.from_layers(each) for each in (layers, other)]
    most = growth(tied(*map(model_of_network, nets)))
    X = rng.standard_normal((500, 3)) * rng.choice([0.01, 1.0, 1e3], (500, 1))
    gaps = np.abs(nets[0](X) - nets[1](X)).max(axis=1) / (1 + np.linalg.norm(X, axis=1))
    assert gaps.max() < most < 100 * gaps.max()


def test_models_that_are_no_files_are_refused(tmp_path):
    net = pn.ReluNetwork.from_layers(network(np.random.default_rng(4)))
    with pytest.raises(ValueError, match="a certificate names the models"):
        pn.diff(net, net, certificate=tmp_path / "proof")
    net.save(tmp_path / "net.onnx")
    with pytest.raises(CertificateError, match="no certificate"):  # what is there stays
        pn.diff(tmp_path / "net.onnx", tmp_path / "net.onnx", certificate=tmp_path / "net.onnx")


@pytest.mark.parametrize("fault", ["limit", "box", "places", "scales"])
def test_a_tied_claim_that_is_false_is_rejected(pair, tmp_path, fault):
    rng = np.random.default_rng(5)
    layers = network(rng)
    other = moved(rng, layers)
    other[-1] = other[-1][0], other[-1][1] + 1e-3  # the gap is 1e-3 everywhere
    answer, said, _ = pair(layers, other, box=BOX, tol=2e-3)
    assert answer.verdict == "same" and said is not None
    claim, arrays = proof_files.unpacked((tmp_path / "proof").read_bytes())
    arrays = {name: values.copy() for name, values in arrays.items()}
    assert "tie_places" in arrays
    if fault == "limit":
        arrays["limits"][:] = -0.5e-3  # gap <= 0.0005
    elif fault == "box":
        arrays["boxes"] *= 1e18  # what rounding leaves is no longer small there
    elif fault == "places":
        arrays["tie_places"][0] = arrays["tie_places"][1]
    else:
        arrays["tie_scales"][0] = -1.0
    models = [(tmp_path / name).read_bytes() for name in ("a.onnx", "b.onnx")]
    with np.errstate(all="ignore"), pytest.raises(checker.Rejected):
        checker.check(proof_files.packed(claim, arrays), models, write=lambda line: None)


@pytest.mark.parametrize("seed", range(3))
def test_tied_models_have_the_outputs_of_both(seed):
    """In the library and in the checker, at points and between bounds on boxes."""
    rng = np.random.default_rng(seed)
    layers = network(rng)
    other = [(W + 0.1 * rng.standard_normal(W.shape), b + 0.1) for W, b in moved(rng, layers)]
    nets = [pn.ReluNetwork.from_layers(each) for each in (layers, other)]
    pairs = [Pairs(rng.permutation(n), rng.uniform(0.5, 2, n)) for n in (8, 7)]

    both = tied(*map(model_of_network, nets), pairs)
    X = rng.uniform(-1, 1, (200, 3))
    truth = np.concatenate([net(X) for net in nets], axis=1)
    assert np.allclose(both(X), truth, atol=1e-12)
    low, high = pn.relaxation.bounds(both, -np.ones(3), np.ones(3), method="linear")
    assert (low <= truth).all() and (truth <= high).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_checkers_tie_bounds_what_it_should(seed, tmp_path):
    rng = np.random.default_rng(10 + seed)
    layers = network(rng)
    other = [(W + 0.1 * rng.standard_normal(W.shape), b + 0.1) for W, b in layers]
    nets = [pn.ReluNetwork.from_layers(each) for each in (layers, other)]
    pairs = {"tie_places": [], "tie_scales": []}
    for n in (8, 7):
        pairs["tie_places"] += rng.permutation(n).tolist()
        pairs["tie_scales"] += rng.uniform(0.5, 2, n).tolist()

    def take(name, n):
        values, pairs[name] = np.array(pairs[name][:n]), pairs[name][n:]
        return values

    made, others = checker.Network(3), checker.Network(3)
    for net, network_ in zip(nets, (made, others), strict=True):
        net.save(tmp_path / "net.onnx", dtype="float64")
        checker.Reader(network_, (tmp_path / "net.onnx").read_bytes(), np.arange(3))
    checker.tie(made, others, take)
    X = rng.uniform(-1, 1, (50, 3))
    low, high = checker.Bounds(made, X, X).complete()
    assert (low <= nets[1](X) + 1e-12).all() and (nets[1](X) <= high + 1e-12).all()
    bounds = checker.Bounds(made, -np.ones((1, 3)), np.ones((1, 3)))
    bounds.complete(linear=True)
    (low, high), values = bounds.values[-1], nets[1](X)
    assert (low <= values).all() and (values <= high).all()
    rows = np.concatenate([np.eye(3), -np.eye(3)])[None]
    most = bounds.largest(*bounds.upper(len(made.nodes), rows))[0]
    assert (values @ rows[0].T <= most).all()


def test_a_gap_is_claimed_to_both_sides():
    sets = _gap_sets((np.zeros(1), np.ones(1)), np.full(2, 0.25))
    for f, g, inside in (([0, 0], [0, 0.2], 0), ([0, 0], [0, 0.3], 1), ([0.3, 0], [0, 0.3], 2)):
        assert sum(each.contains([0.5], [*f, *g]) for each in sets) == inside


def test_tolerances_of_each_output_are_claimed(pair):
    layers = network(np.random.default_rng(7))
    other = [*layers[:-1], (layers[-1][0], layers[-1][1] + [0.0, 1e-3, 0.0])]
    answer, said, lines = pair(layers, other, box=BOX, tol=[1e-5, 2e-3, 1e-5], rtol=0.0)
    assert answer.verdict == "same" and said.startswith("holds")
    assert sum(line.endswith("< -0.002") for line in lines) == 2
    answer, said, _ = pair(layers, other, box=BOX, tol=[2e-3, 1e-5, 1e-5], rtol=0.0)
    assert answer.verdict == "different" and said.startswith("violated")


def test_classes_are_claimed_of_both_models():
    sets = _ahead((np.zeros(1), np.ones(1)), 3, 1)
    assert not any(each.contains([0.5], [0, 1, 0.5, 0, 2, 1]) for each in sets)
    assert any(each.contains([0.5], [0, 1, 0.5, 0, 2, 2]) for each in sets)
    assert any(each.contains([0.5], [3, 1, 0.5, 0, 2, 1]) for each in sets)


def test_lines_around_the_gap_of_relus_hold():
    rng = np.random.default_rng(8)
    ends = np.sort(rng.uniform(-2, 2, (2, 2, 200)), axis=1)
    d, z = (Interval(*each[:, None]) for each in ends)
    moved = Interval(z.lower + d.lower, z.upper + d.upper)
    lines, inside = ReluGap().relaxation(d, z, moved), ReluGap().interval(d, z, moved)
    for _ in range(50):
        x, y = (rng.uniform(*box) for box in (d, z))
        gap = np.maximum(y + x, 0) - np.maximum(y, 0)
        assert (lines.lower[0] * x + lines.below <= gap + 1e-12).all()
        assert (gap <= lines.upper_slopes[0] * x + lines.above + 1e-12).all()
        assert (inside.lower <= gap + 1e-12).all() and (gap <= inside.upper + 1e-12).all()


# ---------------------------------------------------------------------- products in a row


def write(path, layers):
    """Write layers as products and sums; None is a ReLU, so that products may follow products."""
    nodes, stored, name = [], [], "x"
    for i, layer in enumerate(layers):
        if layer is None:
            nodes.append(helper.make_node("Relu", [name], [f"y{i}"]))
        else:
            W, b = (np.asarray(each, float) for each in layer)
            stored += [numpy_helper.from_array(W.T.copy(), f"W{i}"), numpy_helper.from_array(b, f"b{i}")]
            nodes.append(helper.make_node("MatMul", [name, f"W{i}"], [f"z{i}"]))
            nodes.append(helper.make_node("Add", [f"z{i}", f"b{i}"], [f"y{i}"]))
        name = f"y{i}"
    sizes = len(np.asarray(layers[0][0])[0]), len(layers[-1][0])
    ends = [
        helper.make_tensor_value_info(each, TensorProto.DOUBLE, [1, n])
        for each, n in zip(("x", name), sizes, strict=True)
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    path.write_bytes(made.SerializeToString())
    return path


def products(change=0.0):
    """Return two products in a row, in which changes cancel, and a sum of ReLUs."""
    inner = [[1.0 + change, change], [1.0 + change, 0.01 + change]]
    return [(inner, [0, 0]), ([[1, -1], [0, 1]], [0, 0]), None, ([[1, 1]], [0])]


@pytest.mark.parametrize("tol", [2.5e-3, 8e-3, 2e-2])
def test_products_in_a_row_are_bounded_as_they_are_read(tmp_path, tol):
    """The checker sees two layers where both together would have smaller weights."""
    paths = [write(tmp_path / f"{c}.onnx", products(c)) for c in (0.0, 1e-3)]
    answer = pn.diff(*paths, tol=tol, rtol=0.0, certificate=tmp_path / "proof")
    assert answer.verdict == "same" and answer.gap_upper < 2e-3
    assert bool(answer.certificate) == (tol > 1e-2)
    if not answer.certificate:
        assert answer.certificate_note.endswith(
            "weights alone do not show it for all inputs; give a box"
        )
        return
    models = [path.read_bytes() for path in paths]
    with np.errstate(all="ignore"):
        said = checker.check((tmp_path / "proof").read_bytes(), models, write=lambda line: None)
    assert said.startswith("holds: the gap")


@pytest.mark.parametrize("split", [False, True])
def test_tied_models_have_the_layers_that_the_checker_reads(tmp_path, split):
    rng = np.random.default_rng(21)
    layers = [(rng.standard_normal((m, n)), np.zeros(m)) for n, m in pairwise((3, 5, 4, 6, 2))]
    if split:  # the last hidden unit as two halves
        (W, b), (V, c) = layers[1:3]
        other = (
            (W[[0, 1, 2, 3, 3]], b[[0, 1, 2, 3, 3]]),
            (V[:, [0, 1, 2, 3, 3]] * [1, 1, 1, 0.5, 0.5], c),
        )
    else:  # in another order
        (W, b), (V, c) = layers[1:3]
        other = (W[[2, 0, 3, 1]], b[[2, 0, 3, 1]]), (V[:, [2, 0, 3, 1]], c)
    given = [
        [layers[0], (W, b), None, (V, c), layers[3]],
        [layers[0], other[0], None, other[1], layers[3]],
    ]
    paths = [write(tmp_path / f"{i}.onnx", each) for i, each in enumerate(given)]
    graphs = tuple(map(pn.load, paths))
    joint = Joint(*(graph.scores() for graph in graphs))
    networks = tuple(graph.relu_network() for graph in graphs)
    (both, ties), (_, nothing) = _forms(joint, graphs, networks, False, NEVER)
    assert nothing is None and (ties["tie_places"] != np.arange(len(ties["tie_places"]))).any()
    sizes = [np.prod(node.shape) for node in both.nodes if type(node.operation).__name__ == "Dense"]
    assert sizes[:4] == [5, 4, 6, 2]  # of the first model, product by product
    X = rng.standard_normal((50, 3))
    assert np.allclose(both(X), np.concatenate([graph(X) for graph in graphs], axis=1))
    answer = pn.diff(*paths, box=BOX, certificate=tmp_path / "proof", budget=200.0)
    assert answer.verdict == "same" and answer.certificate, answer.certificate_note
    with np.errstate(all="ignore"):
        models = [path.read_bytes() for path in paths]
        said = checker.check((tmp_path / "proof").read_bytes(), models, write=lambda line: None)
    assert said.startswith("holds: none of 4 unsafe sets")


def test_units_of_rows_alone_are_moved():
    """What is no row in the file is paired entry by entry, or not at all."""
    model = model_of_network(pn.ReluNetwork.from_layers(network(np.random.default_rng(22))))
    same, moved_ = Pairs.same(8), Pairs(np.arange(8)[::-1], np.ones(8))
    assert _fit([same, Pairs.same(7)], model) and _fit([moved_, Pairs.same(7)], model)
    assert not _fit([same], model) and not _fit([same, same], model)
