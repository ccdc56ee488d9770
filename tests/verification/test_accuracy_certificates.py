"""Certified accuracy as a certificate: what it counts is what the answer says."""

import numpy as np
import pytest

import pindown as pn
from pindown.verification import certified_accuracy
from pindown.verification.accuracy_certificates import _rivals
from tests.verification.checking import load_checker, wide_network

checker = load_checker()
RADII = (0.01, 0.05, 0.6)


def accepted(path, *models, write=lambda line: None):
    with np.errstate(all="ignore"):
        files = [model.read_bytes() for model in models]
        return checker.check(path.read_bytes(), files, write=write)


def test_what_is_counted_is_what_the_answer_says(tmp_path):
    rng = np.random.default_rng(0)
    layers = [(np.asarray(W), b) for W, b in wide_network(rng, 4, (12, 8), 3).layers]
    middle = pn.ReluNetwork.from_layers(layers)(rng.uniform(-1, 1, (999, 4))).mean(axis=0)
    net = pn.ReluNetwork.from_layers([*layers[:-1], (layers[-1][0], layers[-1][1] - middle)])
    net.save(tmp_path / "net.onnx", dtype="float64")
    X = rng.uniform(-1, 1, (6, 4))
    y = net(X).argmax(axis=1)
    y[0] = (y[0] + 1) % 3  # wrong at once
    proof = tmp_path / "proof"
    found = certified_accuracy(
        tmp_path / "net.onnx", X, y, RADII, budget=10.0, certificate=proof, verbose=0
    )
    safe = int((found.certified_radius >= 0).sum())
    reached = int(np.isfinite(found.attacked_radius).sum())
    assert found.certificate == str(proof) and safe >= 2 and reached >= 2
    said = accepted(proof, tmp_path / "net.onnx")
    assert f"of {safe + reached} questions {safe} hold, {reached} are violated, 0 open" in said


def test_one_output_has_two_classes(tmp_path):
    net = pn.ReluNetwork.from_layers([([[1.0]], [0])])  # the class is the sign
    net.save(tmp_path / "net.onnx")
    proof = tmp_path / "proof"
    found = certified_accuracy(
        tmp_path / "net.onnx",
        [[1.0], [3.0], [-2.0]],
        [1, 1, 0],
        [0.5, 2.5],
        certificate=proof,
        verbose=0,
    )
    assert found.lower.tolist() == [1.0, 1 / 3] and found.upper.tolist() == [1.0, 1 / 3]
    lines = []
    said = accepted(proof, tmp_path / "net.onnx", write=lines.append)
    assert "of 5 questions 3 hold, 2 are violated, 0 open" in said
    told = [line.split(": ")[1] for line in lines if line.startswith("question ")]
    assert sorted(told) == ["holds"] * 3 + ["violated"] * 2


def test_balls_that_are_no_boxes_have_no_certificate(tmp_path):
    net = pn.ReluNetwork.from_layers([([[1.0, 1.0]], [0])])
    net.save(tmp_path / "net.onnx")
    given = {"norm": "l2", "certificate": tmp_path / "proof", "verbose": 0}
    found = certified_accuracy(tmp_path / "net.onnx", [[1.0, 1.0]], [1], [0.5], **given)
    assert found.lower.tolist() == [1.0] and "no boxes" in found.certificate_note
    with pytest.raises(ValueError, match="a certificate names the models"):
        certified_accuracy(net, [[1.0, 1.0]], [1], [0.5], **given)


def test_every_other_class_is_a_rival():
    scores = np.array([0.0, 3.0, 1.0])
    assert sorted(float((row @ scores)[0]) for row in _rivals(1, 3)) == [2.0, 3.0]
    assert [row.tolist() for row in _rivals(0, 1)] == [[[-1.0]]]
