"""Tests that need files beside the project look for them in one place: else they are skipped unseen."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOOKS = re.compile(r'Path\(__file__\)\.parents\[(\d+)\] / "shared"')


def test_the_folder_beside_the_project_is_meant():
    met = 0
    for folder in ("tests", "benchmarks", "gallery", "reproduction"):
        for path in (ROOT / folder).rglob("*.py"):
            for depth in LOOKS.findall(path.read_text("utf-8")):
                met += 1
                assert path.parents[int(depth)] == ROOT.parent, path
    assert met > 10
