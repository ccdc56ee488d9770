"""The experiments end to end on a few rows: every variant trains, and says which data it had."""

import json

import pytest

from pindown_reproduction import EXPERIMENTS, reproduce
from pindown_reproduction.experiment import Experiment
from pindown_reproduction.local_maxima import local_maxima_ablations as ablations

SMALL = {
    "train": 40,
    "test": 60,
    "members": 1,
    "epochs": {"paper": 1, "auto": 1, "networks": 1},
    "seeds": 1,
}
SETTINGS = {
    "local-maxima-one-class": {"data": ["mnist"], "classes": [0], "presets": ["auto"]},
    "local-maxima-ablations": {"data": "cifar10", "classes": [0], "presets": ["auto"]},
    "local-maxima-noise": {"data": ["mnist"], "classes": [0], "presets": ["auto"], "levels": [0.2]},
    "local-maxima-signs": {"classes": [1], "presets": ["auto"]},
    "local-maxima-survival": {"tables": ["gse7390"], "presets": ["auto"], "folds": 1},
    "local-maxima-grid": {"presets": ["networks"], "points": 64},
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_cells_run_resume_and_say_that_the_data_were_not_there(name, tmp_path, monkeypatch):
    monkeypatch.delenv("PINDOWN_DATA", raising=False)
    known = EXPERIMENTS[name]
    small = Experiment(**{**vars(known), "settings": {"quick": {**SMALL, **SETTINGS[name]}}})
    first = reproduce(small, out=tmp_path)
    assert first.outcome.verdict == "no published number"
    if name != "local-maxima-grid":  # its points are drawn, not read
        assert "scikit-learn" in first.outcome.words and "PINDOWN_DATA" in first.outcome.words
    stored = json.loads((first.folder / "results.json").read_text())
    again = reproduce(small, out=tmp_path, resume=True)
    assert json.loads((again.folder / "results.json").read_text())["cells"] == stored["cells"]
    assert first.seconds == again.seconds  # nothing was run twice


def test_every_variant_of_the_ablation_has_the_functions_it_should():
    cells = ablations.cells({**SMALL, **SETTINGS["local-maxima-ablations"]})
    found = {cell["ablation"]: set(ablations.run(cell)) & {"c", "h"} for cell in cells}
    both = {"c", "h"}
    assert found == {None: both, "c": {"c"}, "h": {"h"}, "only_g_c": both, "only_g_h": both}
