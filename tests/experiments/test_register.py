"""Names of experiments are known without importing them, and one is imported without the others."""

import subprocess
import sys

import pytest

import pindown.experiments
from pindown.experiments import EXPERIMENTS

COUNT = """
import sys
import pindown.experiments as package
def loaded():
    return sorted(name for name in package._MODULES if f"pindown.experiments.{name}" in sys.modules)
assert len(package.EXPERIMENTS) == len(list(package.EXPERIMENTS)) == len(package._MODULES) > 50
assert "max-pooling" in package.EXPERIMENTS and "none" not in package.EXPERIMENTS
assert loaded() == [], loaded()
assert package.EXPERIMENTS["max-pooling"].id == "max-pooling"
assert loaded() == ["max_pooling"], loaded()
assert package.gate_horizons.EXPERIMENT is package.EXPERIMENTS["gate-horizons"]
assert loaded() == ["gate_horizons", "max_pooling"], loaded()
assert "torch" not in sys.modules
"""


def test_one_experiment_imports_one_module():
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_name_is_the_id_of_what_it_stands_for():
    assert [experiment.id for experiment in EXPERIMENTS.values()] == list(EXPERIMENTS)
    modules = [f"{pindown.experiments.__name__}.{name}" for name in pindown.experiments._MODULES]
    assert [sys.modules[module].EXPERIMENT for module in modules] == list(EXPERIMENTS.values())
    assert set(pindown.experiments._IDS) <= set(pindown.experiments._MODULES)
    assert dict(EXPERIMENTS) == dict(EXPERIMENTS.items())
    assert repr(EXPERIMENTS).startswith(f"<{len(EXPERIMENTS)} experiments: depth-separation, ")


def test_what_is_not_there():
    assert EXPERIMENTS.get("none") is None
    with pytest.raises(KeyError, match="none"):
        EXPERIMENTS["none"]
    with pytest.raises(AttributeError, match="no attribute 'none'"):
        pindown.experiments.none  # noqa: B018
