"""More than 20,000 mutated files: each is read or refused in one line, in bounded time and memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Pieces of a few seconds each, so that parallel test runs can share them.
PIECES = [
    *(("onnx-bytes", seed, 2_000) for seed in range(4)),
    *(("onnx-structure", seed, 2_000) for seed in range(4)),
    *(("safetensors", seed, 2_500) for seed in range(2)),
    ("onnx-gzip", 0, 2_000),
]
assert sum(count for _, _, count in PIECES) >= 20_000


# Seeds that no ordinary run tries, for a long look before a release.
MORE = [(kind, 1000 + seed, 5 * count) for kind, seed, count in PIECES]


@pytest.mark.parametrize(
    "kind, seed, count",
    [*PIECES, *(pytest.param(*piece, marks=pytest.mark.slow) for piece in MORE)],
    ids=str,
)
def test_mutated_files_are_read_or_refused(kind, seed, count, tmp_path):
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.io.fuzz_worker"]
    run = subprocess.run(
        [*command, kind, str(seed), str(count), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    report = json.loads(run.stdout)
    assert not report["failures"], json.dumps(report["failures"], indent=1)[:5000]
    assert sum(report["counts"].values()) == count
    assert report["counts"]["refused"] > count / 10 and report["counts"]["read"] > 0
    assert report["peak_bytes"] < 2.5 * 2**30
