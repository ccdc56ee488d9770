"""Which tests to run before a commit: a quick core, and those of files that changed.

``python -m tests.touched`` prints them. A module is tested by the file that mirrors its path; where
there is none, by the tests of its room that mention it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = (
    "tests/test_layers.py",
    "tests/test_network.py",
    "tests/test_validation.py",
    "tests/test_deadline.py",
    "tests/test_project_files.py",
)


def changed_files() -> list[Path]:
    """Return files that differ from the main branch, or are not known to git yet."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    changed = _git("diff", "--name-only", base[0])
    return [Path(name) for name in (*changed, *_git("ls-files", "-o", "--exclude-standard"))]


def files_testing(path: Path) -> list[str]:
    """Return the test files of one changed file."""
    if path.parts[:1] == ("tests",):
        return [str(path)] if path.name.startswith("test_") and path.suffix == ".py" else []
    if path.parts[:2] != ("src", "pindown") or path.suffix != ".py":
        return []
    inside = Path(*path.parts[2:])
    mirror = ROOT / "tests" / inside.parent / f"test_{inside.stem.lstrip('_')}.py"
    if mirror.exists():
        return [str(mirror.relative_to(ROOT))]
    module = ".".join(("pindown", *inside.with_suffix("").parts)).removesuffix(".__init__")
    room = ROOT / "tests" / inside.parts[0]
    if not room.is_dir():
        return []
    users = [file for file in sorted(room.rglob("test_*.py")) if module in file.read_text("utf-8")]
    return [str(file.relative_to(ROOT)) for file in users]


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


if __name__ == "__main__":
    found = [name for path in changed_files() if (ROOT / path).exists() for name in files_testing(path)]
    print(*dict.fromkeys([*CORE, *found]))
