"""The checker is not fooled by mutated certificates, other models, or wrong bounds in the library."""

import copy
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import pindown as pn
from pindown.model.operations import affine_operation, operation, relu
from pindown.relaxation import forward_bounds
from pindown.verification import certified_accuracy, portfolio, proof_files
from tests.verification.checking import Problem, certified, load_checker, problems, wide_network

checker = load_checker()
SHARED_MODELS = Path(__file__).parents[2].parent / "shared" / "models"
MUTATED = ("boxes", "witness", "ends", "signs", "many boxes")


def said(data, models, text=None):
    """Return whether the checker accepts, as its main program decides that, and why not."""
    with np.errstate(all="ignore"):
        try:
            checker.check(data, models, text, write=lambda line: None)
        except checker.Rejected as reason:
            return False, str(reason)
        except Exception as fault:
            return False, type(fault).__name__
    return True, ""


@cache
def originals():
    """Return claims, arrays and models of certificates that are accepted."""
    found = {}
    for name in MUTATED:
        with TemporaryDirectory() as folder:
            _, models, data = certified(problems()[name], folder)
        assert said(data, models)[0]
        found[name] = *proof_files.unpacked(data), models, problems()[name].models[0]
    with TemporaryDirectory() as folder:
        found["pair"], found["everywhere"] = (_pair(Path(folder), box) for box in (True, False))
        found["counted"] = _counted(Path(folder))
    for claim, arrays, models, _ in found.values():
        assert said(proof_files.packed(claim, arrays), models)[0]
    return found


def _pair(folder, box):
    """Return the certificate of two networks that differ by rounding, and both outputs."""
    nets = [wide_network(np.random.default_rng(4), 2, (6, 5), 2)]
    layers = [(np.asarray(W)[::-1][:, ::-1], b[::-1]) for W, b in nets[0].layers]
    layers[0] = layers[0][0][:, ::-1], layers[0][1]
    layers[-1] = layers[-1][0][::-1], layers[-1][1][::-1] + 1e-6
    nets.append(pn.ReluNetwork.from_layers(layers))
    paths = [folder / f"{i}.onnx" for i in (0, 1)]
    for net, path in zip(nets, paths, strict=True):
        net.save(path, dtype="float64")
    corners = (-np.ones(2), np.ones(2)) if box else None
    answer = pn.diff(*paths, box=corners, certificate=folder / "proof", budget=20.0)
    assert answer.certificate, answer.certificate_note
    data = (folder / "proof").read_bytes()
    models = [path.read_bytes() for path in paths]
    return *proof_files.unpacked(data), models, lambda x: np.concatenate([n(x) for n in nets], axis=-1)


def _counted(folder):
    """Return the certificate of an accuracy: a class that stays, one that is wrong, one that changes."""
    net = pn.ReluNetwork.from_layers([([[1.0, 0.5]], [0])])  # the class is the sign
    net.save(folder / "sign.onnx")
    X, y = [[1.0, 1.0], [0.5, 0.5], [-1.0, 0.0]], [1, 1, 1]
    given = {"certificate": folder / "counted", "verbose": 0}
    found = certified_accuracy(folder / "sign.onnx", X, y, [0.2, 0.6], **given)
    assert found.certificate
    data = (folder / "counted").read_bytes()
    return *proof_files.unpacked(data), [(folder / "sign.onnx").read_bytes()], net


def mutated(rng, claim, arrays):
    """Change one or two things in a certificate, and compute its checksum anew."""
    claim, arrays = copy.deepcopy(claim), {name: values.copy() for name, values in arrays.items()}
    for _ in range(int(rng.integers(1, 3))):
        name = str(rng.choice(list(arrays)))
        values, kind = arrays[name], int(rng.integers(9))
        if kind <= 3 and values.size:
            at = rng.integers(values.size)
            old = values.flat[at]
            with np.errstate(all="ignore"):
                new = [0, 1, -old, old + 1, 2 * old, old / 3, np.nan, 1e300, 1e-300, 255][
                    rng.integers(10)
                ]
                values.flat[at] = np.array(new).astype(values.dtype)
        elif kind == 4:
            arrays[name] = values[: rng.integers(len(values) + 1)]  # left out
        elif kind == 5:
            arrays[name] = np.concatenate([values, values])
        elif kind == 6 and len(values):
            arrays[name] = values[rng.permutation(len(values))]
        elif kind == 7:
            del arrays[name]
            if not arrays:
                break
        else:
            _mutate_claim(rng, claim, arrays)
    return proof_files.packed(claim, arrays)


def _mutate_claim(rng, claim, arrays):
    key = str(rng.choice(list(claim)))
    kind = int(rng.integers(5))
    if kind == 0 and "boxes" in arrays:  # a wider claim
        arrays["boxes"] = arrays["boxes"] * rng.choice([1.01, 2.0, 1e3])
    elif kind == 1 and "limits" in arrays:
        arrays["limits"] = arrays["limits"] + rng.choice([1e-3, 0.5, 10.0])
    elif kind == 2:
        claim["verdict"] = str(rng.choice(["holds", "violated", "undecided", ""]))
    elif kind == 3:
        del claim[key]
    else:
        claim[key] = [None, 0, -1, 10**30, "x", [], [0, 0], {}, True, 1.5][int(rng.integers(10))]


def refuted(data, net, rng):
    """Return whether an accepted claim is false, as far as corners and samples tell."""
    claimed = checker.Certificate(data)
    if "growth" in claimed.claim:
        k, d = claimed.networks[0][2], claimed.d
        points = rng.standard_normal((300, d)) * rng.choice([0.0, 1.0, 1e3], (300, 1))
        gaps = np.abs(net(points)[:, :k] - net(points)[:, k:]).max(axis=1)
        return bool((gaps > claimed.claim["growth"] * (1 + np.linalg.norm(points, axis=1))).any())
    for s, box in enumerate(claimed.set_box):
        if claimed.verdict == "counted" and not claimed.arrays["proof"][s]:
            continue  # nothing is claimed, or there is a witness, which the checker evaluates
        low, high = claimed.boxes[box]
        points = rng.uniform(low, high, (300, len(low)))
        if len(low) <= 8:
            points = np.concatenate(
                [points, [np.where(c, low, high) for c in product((0, 1), repeat=len(low))]]
            )
        _, _, (rows, limits, strict) = claimed.set(s)
        values = net(points) @ rows[:, : len(net(points[0]))].T
        inside = np.where(strict, values < limits - 1e-9, values <= limits - 1e-9).all(axis=1)
        if claimed.verdict == "violated":
            for reached, x in zip(
                claimed.arrays["witness_sets"], claimed.arrays["witness"], strict=True
            ):
                if s == reached and not (net(x) @ rows.T <= limits + 1e-9).all():
                    return True
        elif inside.any():
            return True
    return False


def _try_many(seed, n):
    rng = np.random.default_rng(seed)
    names, accepted, reasons = list(originals()), 0, set()
    for i in range(n):
        claim, arrays, models, net = originals()[names[i % len(names)]]
        data = mutated(rng, claim, arrays)
        if i % 10 == 9:  # bytes, whatever they are
            body = bytearray(data)
            body[int(rng.integers(len(body)))] ^= int(rng.integers(1, 256))
            data = bytes(body)
        good, reason = said(data, models)
        reasons.add(reason)
        if good:
            accepted += 1
            assert not refuted(data, net, rng), f"mutant {i} of {names[i % len(names)]}"
    return accepted, reasons


def test_mutated_certificates_are_rejected_unless_their_leaves_prove_what_they_claim():
    accepted, reasons = _try_many(0, 200)
    assert accepted < 100 and len(reasons) > 10


@pytest.mark.slow
def test_two_thousand_mutated_certificates():
    accepted, _ = _try_many(1, 2000)
    assert accepted < 1000


def test_other_models_are_rejected():
    _, arrays, models, _ = originals()["boxes"]
    claim = originals()["boxes"][0]
    others = originals()["many boxes"][2]
    data = proof_files.packed(claim, arrays)
    assert said(data, others)[1] == "model 1 is another file than the one that the certificate is about."
    assert not said(data, models + models)[0]
    # The right hash does not help: the bounds are those of the model that is there.
    forged = copy.deepcopy(claim)
    forged["models"][0]["sha256"] = checker.hashlib.sha256(others[0]).hexdigest()
    lifted = {**arrays, "limits": arrays["limits"] + 2.05}  # f <= 0.05: it reaches 0.09
    assert not said(proof_files.packed(forged, lifted), others)[0]


@pytest.fixture
def blind(monkeypatch):
    """Let the search find no violation: what it proves is wrong then, if its bounds are."""
    monkeypatch.setattr(portfolio.Run, "_search", lambda self, turns: None)
    monkeypatch.setattr(portfolio.Run, "_try", lambda self, corners: None)


def test_a_wrong_slope_rule_of_the_library_is_caught(blind, monkeypatch, tmp_path):
    right = relu.triangle_lines

    def wrong(low, high):
        lower, slope, shift = right(low, high)
        return lower, slope, 0.2 * shift  # a line that cuts the corner off

    monkeypatch.setattr(relu, "triangle_lines", wrong)
    norm = problems()["boxes"].models[0]
    false = pn.Property.box([-1, -1], [1, 1], [[1.0]], [1.7])
    answer, models, data = certified(Problem((norm,), false, "holds"), tmp_path)
    assert answer.verdict == "holds"  # wrongly: the norm is 2 at the corners
    good, reason = said(data, models)
    assert not good and (" not" in reason or "no proof" in reason)


def test_a_forgotten_rounding_of_the_library_is_caught(blind, monkeypatch, tmp_path):
    """1e16 + 1 - 1e16 is 1; float64 makes 0 of it."""
    for module in (affine_operation, operation, forward_bounds):
        monkeypatch.setattr(module, "gamma", lambda n: 0.0)
    net = pn.ReluNetwork.from_layers([([[1e16, 1.0, -1e16]], [0.0])])
    one = np.ones(3)
    false = pn.Property.box(one, one, [[1.0]], [0.5])
    answer, models, data = certified(Problem((net,), false, "holds"), tmp_path)
    assert answer.verdict == "holds"
    good, reason = said(data, models)
    assert not good and (" not" in reason or "no proof" in reason)


def test_a_tensor_that_is_read_under_two_names_keeps_its_value(tmp_path):
    """x W is read by a ReLU, and reshaped by a sum with a constant: the constant is not for the ReLU."""
    from onnx import TensorProto, helper, numpy_helper

    constants = {"w": np.eye(2, dtype=np.float32), "c": np.full((1, 2), 5.0, np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Add", ["b", "c"], ["shifted"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Add", ["shifted", "r"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    graph = helper.make_graph(
        nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(v, n) for n, v in constants.items()]
    )
    network = checker.Network(2)
    data = helper.make_model(graph).SerializeToString()
    output = checker.Reader(network, data, np.arange(2)).output
    assert output == len(network.nodes)
    values = [checker.fractions(np.array([[1.0, -2.0]]))]
    for node in network.nodes:
        values.append(node.exactly(values))
    assert values[-1].tolist() == [[7.0, 3.0]]


def test_branches_do_not_share_what_is_unknown():
    """relu(x) - relu(x - 0.01) is up to 0.01: the two ReLUs leave their lines one without the other."""
    network = checker.Network(1)
    for shift in (0.0, -0.5):
        moved = network.add(checker.Affine([network.pick(0)], np.array([shift])))
        network.add(checker.Relu(moved))
    network.add(checker.Affine([network.pick(2), network.pick(4, weight=-1.0)], np.zeros(1)))
    bounds = checker.Bounds(network, np.array([[-1.0]]), np.array([[1.0]]))
    bounds.complete(linear=True)
    (low,), (high,) = (end[0] for end in bounds.values[-1])
    x = np.linspace(-1, 1, 201)
    made = np.maximum(x, 0) - np.maximum(x - 0.5, 0)
    assert low <= made.min() and high >= made.max()


@pytest.mark.parametrize("name", ["acasxu_1_1.onnx", "acasxu_1_2_pruned10.onnx"])
def test_matrices_that_stand_on_the_left_are_read(name):
    path = SHARED_MODELS / name
    net = pn.load(path)
    network = checker.Network(5)
    output = checker.Reader(network, path.read_bytes(), np.arange(5)).output
    x = np.random.default_rng(3).uniform(-0.5, 0.5, (20, 5))
    (low, high) = (end for end in checker.Bounds(network, x, x).complete())
    assert output == len(network.nodes) and (low <= net(x)).all() and (net(x) <= high).all()


def test_roots_may_be_used_in_any_order(tmp_path):
    """A later set may be proved with the first bounds, and the first one with the later ones."""
    problem = problems()["signs"]
    _, models, data = certified(problem, tmp_path)
    claim, arrays = proof_files.unpacked(data)
    assert len(arrays["sign_root"]) == 2
    double = {name: np.concatenate([v, v]) for name, v in arrays.items() if name.startswith("root_")}
    n = int(arrays["sign_root"].max()) + 1
    for roots in ([n, *arrays["sign_root"][1:]], [*arrays["sign_root"][:1], n]):
        order = np.array(roots, np.int32)
        if set(order) == set(range(n + 1)):
            moved = {**arrays, **double, "sign_root": order}
            assert said(proof_files.packed(claim, moved), models)[0]
