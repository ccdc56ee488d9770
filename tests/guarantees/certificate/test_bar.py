"""A bar shows on terminals by default, nowhere else, and not when told to be quiet."""

from functools import partial

import numpy as np
import pytest
from torch import nn

from pindown.guarantees.certificate import _stages as stages
from pindown.guarantees.certificate import certify
from pindown.progress import progress_bar


@pytest.mark.parametrize(
    ("terminal", "settings", "shown"),
    [(True, {}, True), (True, {"verbose": 0}, False), (False, {}, False)],
)
def test_bar(terminal, settings, shown, monkeypatch, capsys):
    monkeypatch.setattr(stages, "progress_bar", partial(progress_bar, patience=0.0))
    monkeypatch.setenv("TERM", "xterm")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    X = np.random.default_rng(0).standard_normal((60, 2))
    certify(nn.Linear(2, 2), X, X[:, 0] > 0, epochs=3, **settings)
    captured = capsys.readouterr()
    assert ("training the prior" in captured.err) is shown
    assert captured.out == ""
