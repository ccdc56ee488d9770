"""Random and damaged graphs: what is read here, onnxruntime reads too, as the same function.

``make slow`` tries 100 times as many; by hand, see :mod:`tests.io.differential`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.io.differential import FINE

PIECES = [("random", 0, 100), ("structure", 0, 150), ("bytes", 0, 100)]
MORE = [(kind, 1000 + seed, 1_000) for kind, _, _ in PIECES for seed in range(17)]


@pytest.mark.parametrize(
    "kind, seed, count",
    [*PIECES, *(pytest.param(*piece, marks=pytest.mark.slow) for piece in MORE)],
    ids=str,
)
def test_no_difference_without_a_note(kind, seed, count):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.io.differential", kind, str(seed), str(count)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    report = json.loads(run.stdout)
    assert not report["examples"], json.dumps(report["examples"], indent=1)[:5000]
    assert sum(report["counts"].values()) == count
    assert report["counts"]["same"] > count / 100 and report["counts"].keys() <= FINE
    assert report["counts"].get("refused, though valid", 0) <= count / 50
