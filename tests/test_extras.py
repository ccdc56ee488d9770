"""Optional parts: everything else works without them, and what does not says what to install."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pindown.extras import EXTRAS, USES

ROOT = Path(__file__).parents[1]
PARTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

# Makes modules look as if they were not installed.
ABSENT = """
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
"""


def run(code, *, absent=tuple(EXTRAS), folder=None):
    """Run code in a new Python in which some modules are not there."""
    code = ABSENT.format(absent=tuple(absent)) + code
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_extras_are_those_of_the_project():
    for module, part in EXTRAS.items():
        names = " ".join(PARTS[part])
        assert module in names
    assert set(USES) == set(PARTS) - {"test", "test-core", "bench", "docs"}


EVERY_NAME = """
import importlib, pkgutil, pindown
from pindown.extras import MissingExtraError
rooms = [pindown, *(
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(pindown.__path__, "pindown.")
    if found.ispkg and "._" not in found.name
)]
there, missing = 0, []
for room in rooms:
    for name in getattr(room, "__all__", ()):
        try:
            getattr(room, name)
            there += 1
        except MissingExtraError as error:
            missing.append(name)
            words = str(error)
            assert "needs torch, which is not installed: " in words, words
            assert words.endswith('[torch]"') and "\\n" not in words, words
print(there, *missing)
"""


def test_every_public_name_is_there_or_says_what_it_needs():
    there, *missing = run(EVERY_NAME).split()
    assert int(there) > 900 and "MutualAutoencoder" in missing
    # What a stranger tries first needs none of them.
    core = {
        "load",
        "diff",
        "verify",
        "shrink",
        "audit",
        "count_regions",
        "polyhedral_complex",
        "canonical",
    }
    core |= {"ExactReluRegressor", "SegmentedRegressor", "attack", "minimum_distance", "max_margin"}
    assert not core & set(missing)


def test_functions_that_need_torch_say_so():
    said = run(
        "from pindown.torch_modules import usable_device\n"
        "try:\n    usable_device('cpu')\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert said.startswith("this needs torch, which is not installed: ") and "pip install" in said


def test_a_page_without_matplotlib_says_so_where_a_picture_would_be(tmp_path):
    run(
        "import numpy as np, pindown as pn\n"
        "net = pn.ReluNetwork.from_layers([(np.eye(2), [0, 0]), (np.eye(2), [0, 0])])\n"
        "X = np.random.default_rng(0).normal(size=(20, 2))\n"
        "pn.audit(net, X, X.argmax(1), budget=5).to_html('page.html')\n",
        folder=tmp_path,
    )
    page = (tmp_path / "page.html").read_text()
    assert "No picture: " in page and "[plots]" in page


def test_the_command_line_says_what_is_missing(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n5,6\n")
    said = run(
        "from pindown.cli.main import main\n"
        "try:\n    main(['detect', 'fit', 'rows.csv', '-o', 'm.safetensors'])\n"
        "except SystemExit as end:\n    print(end.code)\n",
        folder=tmp_path,
    )
    assert said.split() == ["3"]


# Each in a new process, nothing compiled, nothing optional installed; CPU seconds of all of it.
GEOMETRY = "from pindown.geometry import count_regions, polyhedral_complex; BOX = -1, 1\n"
LEARN = "from pindown.learn import ExactReluRegressor, SegmentedRegressor\n"
LEARN += "line = np.linspace(-1, 1, 9)[:, None]\n"
FIRST_STEPS = {
    "load": "pn.load('model.onnx')",
    "diff": "assert pn.diff('model.onnx', pn.canonical(net), box=(0, 1)).verdict == 'same'",
    "verify": "print(pn.verify('model.onnx', pn.Property.robust([0.3, 0.3], 0, 0.01, n_outputs=2)))",
    "shrink": "pn.shrink('model.onnx')",
    "audit": "print(pn.audit('model.onnx', X, y, budget=20))",
    "count": GEOMETRY + "assert count_regions(net, BOX) == polyhedral_complex(net, BOX).n_regions",
    "exact": LEARN + "assert ExactReluRegressor(width=2).fit(line, np.abs(line[:, 0])).optimal_",
    "segmented": LEARN + "SegmentedRegressor(n_pieces=3).fit(line, np.sin(4 * line[:, 0]))",
}
BEGIN = """
import time, numpy as np, pindown as pn
rng = np.random.default_rng(0)
layers = [(rng.normal(size=(8, 2)), rng.normal(size=8)), (rng.normal(size=(2, 8)), [0.0, 0.0])]
net = pn.ReluNetwork.from_layers(layers)
net.save("model.onnx")
X = rng.normal(size=(40, 2))
y = (X[:, 0] > 0).astype(int)
"""
MOST_SECONDS = 3.0
# Of a plain loop of Python on a machine that does nothing else; on a busy one CPU seconds are longer.
YARDSTICK, YARDSTICK_SECONDS = "sum(i * i for i in range(2_000_000))", 0.11


@pytest.mark.parametrize("step", FIRST_STEPS)
def test_first_steps_take_no_time(step, tmp_path):
    code = BEGIN + FIRST_STEPS[step]
    code += "\nassert 'numba' not in sys.modules and 'torch' not in sys.modules"
    code += f"\nspent = time.process_time()\n{YARDSTICK}\nprint(spent, time.process_time() - spent)"
    spent, yardstick = map(float, run(code, folder=tmp_path).split()[-2:])
    assert spent < MOST_SECONDS * max(1.0, yardstick / YARDSTICK_SECONDS)


def test_importing_pindown_takes_no_time():
    code = "import time; begin = time.process_time()\nimport pindown; print(time.process_time() - begin)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.5


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import pytest
raise SystemExit(pytest.main(sys.argv[1:]))
"""
OTHER_REASON = """
def test_it():
    import pindown.extras
    try:
        pindown.extras.torch
    except ImportError:
        pass
    assert 1 == 2
"""


def test_only_what_needs_torch_is_left_out_where_it_is_missing(tmp_path):
    other = tmp_path / "test_other.py"
    other.write_text(OTHER_REASON)
    options = (
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "conftest",
        "-rfs",
        "-c",
        str(ROOT / "pyproject.toml"),
    )
    where = (str(other), str(ROOT / "src/pindown/optim/adam.py"), str(ROOT / "src/pindown/affine.py"))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *options, *where],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "needs torch" in done.stdout and "adam.py" in done.stdout
    assert "FAILED" in done.stdout and "assert 1 == 2" in done.stdout
    assert re.search(r"1 failed, \d+ passed, \d skipped", done.stdout), done.stdout
