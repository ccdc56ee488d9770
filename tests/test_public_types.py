"""Whoever uses a type checker gets types: a user's script passes, a wrong one does not."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

SCRIPT = """
import numpy as np
import pindown as pn
from pindown.bias import empirical_ntk, infinite_ntk, max_margin
from pindown.bias import orthogonal_separability, two_layer_limit
from pindown.geometry import Box, along_segment, count_regions, fold_set, on_plane, polyhedral_complex
from pindown.guarantees import certify, minimum_distance, small_kl_inverse
from pindown.learn import (
    ExactReluRegressor,
    GLMTron,
    KernelLogisticClassifier,
    LinearDistiller,
    LocalMaximaDetector,
    MarginPerceptron,
    MaxPoolClassifier,
    ModifiedSGDRegressor,
    MultiExitClassifier,
    MutualAutoencoder,
    NoisyGDRegressor,
    SegmentedRegressor,
    SparseCodingAutoencoder,
)
from pindown.symmetry import (
    OrbitSignature,
    SymmetryLearner,
    cyclic,
    dihedral,
    equivariance,
    equivariant_basis,
    invariance,
    symmetric,
)

model: pn.Model = pn.load("model.onnx")
net: pn.ReluNetwork = model.relu_network()
other: pn.ReluNetwork = pn.ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[1.0, 1.0]], [0])])
values = net(np.zeros((3, 2)))
shapes: tuple[int, ...] = net.widths
sizes: int = net.depth + net.size + net.in_features + net.out_features + net.n_parameters
slope, offset = net.local_affine([0.0, 0.0])
net.save("small.onnx")

report: pn.Audit = pn.audit(net, budget=5.0, seed=1)
text: str = report.summary() + report.to_html() + report.to_json("report.json")
verdict: str = report["ARC-01"].verdict
answer: pn.Diff = pn.diff(net, other, box=(-1, 1), tol=1e-6)
gap: float = answer.gap_upper - answer.gap_lower
small: pn.Shrunk = pn.shrink(net, tol=0.0)
smaller: pn.ReluNetwork = small.network
fixed: pn.ReluNetwork = pn.canonical(net)
found: pn.Recovered = pn.recover(net, 2, box=(-1, 1))

box = Box([-1, -1], [1, 1])
regions: int = count_regions(net, box)
cells = polyhedral_complex(net, box)
complete: bool = cells.complete
along_segment(net, [0, 0], [1, 1])

distance: float = minimum_distance(net, [0.0, 0.0]).upper
margin: float = max_margin([[1.0], [-1.0]], [1, -1]).margin
order: int = cyclic(4).order
estimators = [
    ExactReluRegressor(width=2),
    GLMTron(),
    KernelLogisticClassifier(),
    LinearDistiller(),
    LocalMaximaDetector(),
    MarginPerceptron(),
    MaxPoolClassifier(),
    ModifiedSGDRegressor(),
    MultiExitClassifier(),
    MutualAutoencoder(),
    NoisyGDRegressor(),
    SegmentedRegressor(),
    SparseCodingAutoencoder(),
]
functions = (
    empirical_ntk, infinite_ntk, orthogonal_separability, two_layer_limit, fold_set, on_plane, certify,
    small_kl_inverse, OrbitSignature, SymmetryLearner, dihedral, equivariance, equivariant_basis,
    invariance, symmetric,
)
"""

# Each line is wrong in one way that only real types can show.
WRONG = """
import pindown as pn
from pindown.bias import empirical_ntk, max_margin
from pindown.geometry import count_regions
from pindown.learn import GLMTron
from pindown.symmetry import cyclic

net = pn.load("model.onnx")
pn.audit(net).summary() + 1
pn.diff(net, net).verdict + 1
count_regions(net, pn.Box([0], [1])) + "text"
max_margin([[1.0]], [1]).margin + "text"
cyclic(3).order + "text"
GLMTron(no_such_parameter=1)
pn.shrink(net).netwrk
empirical_ntk()
"""

# Types of other libraries are not ours to check, and following them takes minutes.
SETTINGS = """
[mypy]
strict = true
[mypy-scipy.*,sklearn.*,onnx.*,matplotlib.*,torch.*,safetensors.*,numba.*,joblib.*,threadpoolctl.*]
ignore_missing_imports = true
follow_imports = skip
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    folder = tmp_path_factory.mktemp("types")
    (folder / "mypy.ini").write_text(SETTINGS)

    def run(source: str) -> tuple[int, str]:
        (folder / "script.py").write_text(source)
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--cache-dir", "cache", "script.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_a_script_with_every_public_name_is_well_typed_and_a_wrong_one_is_not(check):
    code, text = check(SCRIPT)
    assert code == 0, text
    code, text = check(WRONG)
    wrong = WRONG.splitlines()
    first = wrong.index('net = pn.load("model.onnx")') + 2
    for line in range(first, len(wrong) + 1):
        assert f"script.py:{line}: error:" in text, (wrong[line - 1], text)


def test_the_package_says_that_it_has_types():
    import pindown

    assert Path(pindown.__file__).with_name("py.typed").exists()
