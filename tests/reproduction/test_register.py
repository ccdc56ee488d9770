"""Names of experiments are known without importing them, and one is imported without the others."""

import subprocess
import sys

import pytest

from pindown_reproduction import EXPERIMENTS
from pindown_reproduction.register import SOURCES, Register

COUNT = """
import sys
from pindown_reproduction import EXPERIMENTS
from pindown_reproduction.register import SOURCES
def loaded():
    return sorted(
        name.rpartition(".")[2] for name in sys.modules
        if name.startswith(tuple(f"pindown_reproduction.{source}." for source in SOURCES))
    )
assert len(EXPERIMENTS) == len(list(EXPERIMENTS)) > 50
assert "max-pooling" in EXPERIMENTS and "none" not in EXPERIMENTS
assert loaded() == [], loaded()
assert EXPERIMENTS["max-pooling"].id == "max-pooling"
assert loaded() == ["max_pooling"], loaded()
assert EXPERIMENTS["gate-horizons"].id == "gate-horizons"
assert loaded() == ["gate_horizons", "max_pooling"], loaded()
assert "torch" not in sys.modules
"""


def test_one_experiment_imports_one_module():
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_name_is_the_id_of_what_it_stands_for():
    assert [experiment.id for experiment in EXPERIMENTS.values()] == list(EXPERIMENTS)
    assert dict(EXPERIMENTS) == dict(EXPERIMENTS.items())
    assert repr(EXPERIMENTS).startswith(f"<{len(EXPERIMENTS)} experiments: depth-separation, ")
    assert sum(len(Register([source])) for source in SOURCES) == len(EXPERIMENTS)


def test_what_is_not_there():
    assert EXPERIMENTS.get("none") is None
    with pytest.raises(KeyError, match="none"):
        EXPERIMENTS["none"]
