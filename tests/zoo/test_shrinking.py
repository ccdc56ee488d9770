"""``pindown shrink`` on every file there is: never larger, and little memory where nothing can go."""

import os
from pathlib import Path

import onnx
import pytest

from tests.zoo.comparing import fresh
from tests.zoo.exports import KINDS, OPSETS
from tests.zoo.keras_files import KERAS
from tests.zoo.models import ZOO
from tests.zoo.sklearn_models import EXPORTED

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared")) / "models"
ROOM = 200.0  # megabytes, for Python and its libraries
BUDGET = 10.0
# As the command does it, in a process of its own: all of its memory counts.
_SHRINK = """
import json, re, sys
from pathlib import Path
from pindown import load
from pindown.cli.main import main
source, target, said, budget, *output = sys.argv[1:]
sys.stdout = sys.stderr
try:
    main(["shrink", source, "-o", target, "--budget", budget, "--json", said, *output])
except SystemExit as end:
    assert end.code == 0, end
sys.stdout = sys.__stdout__
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
model = load(source, **dict(zip(["output"], output[1:])))
print(len(json.loads(Path(said).read_text())["steps"]), int(peak[1]) / 1000, model.nbytes / 1e6)
"""


def check(source, folder, output=None):
    target = folder / f"small{''.join(source.suffixes[-2:]) if source.suffix == '.gz' else '.onnx'}"
    named = [] if output is None else ["--output", output]
    words = (str(source), str(target), str(folder / "said.json"), str(BUDGET), *named)
    steps, peak, model = fresh(_SHRINK, *words)
    read, written = source.stat().st_size, target.stat().st_size
    assert written <= read, f"{written:,} bytes of {read:,}"
    assert steps > 0 or peak <= 2 * model + ROOM, f"{peak:.0f} MB, the model {model:.0f}"


SLOW = pytest.mark.slow
FILES = [
    pytest.param(name, kind, marks=() if (name, kind) == ("lenet", "qdq") else SLOW)
    for name in ZOO
    for kind in KINDS
]


@pytest.mark.parametrize(("name", "kind"), FILES)
def test_files_of_the_zoo(shelf, name, kind, tmp_path):
    check(shelf.file(name, kind), tmp_path)


@SLOW
@pytest.mark.parametrize("name", KERAS)
def test_keras_and_tf2onnx(shelf, name, tmp_path):
    check(shelf.keras(name), tmp_path)


@SLOW
@pytest.mark.parametrize("name", EXPORTED)
def test_sklearn_exports(shelf, name, tmp_path):
    path = shelf.sklearn(name)
    check(path, tmp_path, onnx.load(path).graph.output[-1].name)


@SLOW
@pytest.mark.parametrize("opset", OPSETS)
def test_operator_sets(shelf, opset, tmp_path):
    check(shelf.opset(opset), tmp_path)


@SLOW
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.onnx*")), ids=lambda path: path.name)
def test_shared_models(path, tmp_path):
    check(path, tmp_path)
