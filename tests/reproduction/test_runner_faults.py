"""Runs that meet with accidents: killed, stopped, out of disk, two at once. Nothing finished is lost."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from pindown.atomic_files import FolderInUseError, only_writer

# Workers and the runs that are killed import this module: matplotlib waits until it is needed.
from pindown_reproduction import Experiment, Outcome, reproduce
from pindown_reproduction.ledger import read_entry
from pindown_reproduction.storage import cell_file

ROOT = Path(__file__).parents[2]
FILES = ("results.json", "table.md", "figure.svg")
LONG = 600  # seconds that a cell takes which is going to be killed
ORPHANED_FOR = 20  # seconds, of which one will do on a quiet machine
PATIENCE = 120  # seconds for something that takes one on a quiet machine


def run_root(cell):
    if str(cell["n"]) == os.environ.get("PINDOWN_TEST_STALL"):
        time.sleep(LONG)
    return {"root": cell["n"] ** 0.5, "b": 1, "a": (2, 3), "worker": 0}


def run_deadly(mark, cell):
    """Die at the second cell, the first time."""
    if cell["n"] == 2 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run_root(cell)


def run_whose(cell):
    """Say who did it, and take long if it is not the first."""
    if cell["n"] > 1:
        time.sleep(LONG)
    return {"root": 1.0, "worker": os.getpid()}


def draw_roots(results):
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    axes.plot([c["n"] for c, _ in results], [r["root"] for _, r in results], label="roots")
    axes.legend()
    return figure


def roots(run=run_root):
    return Experiment(
        id="roots",
        title="Roots",
        source="A test",
        published="1, 1.41, 1.73, 2",
        rule="All equal.",
        settings={"quick": {"numbers": [1, 2, 3, 4]}},
        cells=lambda settings: [{"n": n, "pair": (n, n)} for n in settings["numbers"]],
        run=run,
        compare=lambda results: Outcome(
            "reproduced", "All.", ("n", "root"), tuple((c["n"], r["root"]) for c, r in results)
        ),
        draw=draw_roots,
    )


def written(folder):
    return {name: (folder / "roots" / name).read_bytes() for name in FILES}


def finished(folder):
    return sorted((folder / "roots" / "cells").glob("*.json"))


class Undisturbed(NamedTuple):
    folder: Path
    files: dict[str, bytes]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    reproduce(roots(), out=folder)
    return Undisturbed(folder, written(folder))


def started(folder, n_jobs, *, run="run_root", **environment):
    """Start a run in a process of its own, and with a session of its own, as from a terminal."""
    code = (
        "from tests.reproduction import test_runner_faults as t; from pathlib import Path; "
        f"t.reproduce(t.roots(t.{run}), out=Path({str(folder)!r}), n_jobs={n_jobs})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environment},
        start_new_session=True,
        stderr=subprocess.PIPE,
    )


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def session_of(process):
    """Return the processes that it started, itself included, as long as they run."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in numbers if is_running(pid) and _session(pid) == process.pid]


def _session(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def test_a_run_can_be_repeated_byte_by_byte_and_timing_is_apart(undisturbed, tmp_path):
    done = reproduce(roots(), out=tmp_path)
    assert written(tmp_path) == undisturbed.files and b"seconds" not in undisturbed.files["results.json"]
    timing = json.loads((tmp_path / "roots" / "timing.json").read_text())
    assert [row["cell"]["n"] for row in timing["cells"]] == [1, 2, 3, 4]
    assert timing["seconds"] == done.seconds and timing["cpu_seconds"] == done.cpu_seconds


def test_killed_and_resumed_it_comes_out_as_if_nothing_had_happened(undisturbed, tmp_path):
    run = started(tmp_path, 1, PINDOWN_TEST_STALL="3")
    wait_for(lambda: len(finished(tmp_path)) == 2)
    with pytest.raises(FolderInUseError, match=rf"process {run.pid} .* is writing to .*roots"):
        reproduce(roots(), out=tmp_path, resume=True)
    run.kill()
    run.communicate()
    before = {path: path.stat().st_mtime_ns for path in finished(tmp_path)}
    reproduce(roots(), out=tmp_path, resume=True)  # the dead process's lock is no hindrance
    assert written(tmp_path) == undisturbed.files and len(finished(tmp_path)) == 4
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(undisturbed, tmp_path):
    mark = tmp_path / "died"
    reproduce(roots(partial(run_deadly, str(mark))), out=tmp_path, n_jobs=2)
    assert mark.exists() and written(tmp_path) == undisturbed.files


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes")
def test_ctrl_c_stops_the_workers_and_keeps_what_is_done(tmp_path):
    run = started(tmp_path, 2, run="run_whose")
    wait_for(lambda: len(finished(tmp_path)) == 1)
    worker = json.loads(finished(tmp_path)[0].read_text())["result"]["worker"]
    assert is_running(worker)
    os.killpg(run.pid, signal.SIGINT)
    _, error = run.communicate(timeout=PATIENCE)
    assert run.returncode != 0 and b"KeyboardInterrupt" in error
    wait_for(lambda: not is_running(worker))
    assert len(finished(tmp_path)) == 1 and not (tmp_path / "roots" / "results.json").exists()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes")
def test_workers_end_with_the_process_that_was_killed(tmp_path):
    """Its session is empty again: no worker is left, nor what keeps book for them."""
    run = started(tmp_path, 2, run="run_whose")
    wait_for(lambda: len(finished(tmp_path)) == 1)
    assert len(session_of(run)) >= 3
    run.kill()
    began = time.monotonic()
    run.communicate(timeout=PATIENCE)  # returns when nobody holds its pipe any more
    wait_for(lambda: not session_of(run))
    assert time.monotonic() - began < ORPHANED_FOR


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("name", ["cell", "results"])
def test_a_full_disk_is_said_in_a_line_and_loses_nothing(name, undisturbed, tmp_path, monkeypatch):
    folder = tmp_path / "roots"
    target = cell_file(folder, {"n": 3, "pair": [3, 3]}) if name == "cell" else folder / "results.json"
    opened = Path.open

    def full(path, *args, **settings):
        place = Path("/dev/full") if path.name.startswith(f".{target.name}.") else path
        return opened(place, *(("wb",) if place != path else args), **settings)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(OSError, match=r"no space left in .*what was finished is kept") as caught:
            reproduce(roots(), out=tmp_path)
    assert "\n" not in str(caught.value)
    assert len(finished(tmp_path)) == (2 if name == "cell" else 4)
    assert not list(folder.rglob(".*.tmp")) and not (folder / "results.json").exists()
    reproduce(roots(), out=tmp_path, resume=True)
    assert written(tmp_path) == undisturbed.files


def test_a_folder_that_cannot_be_written_is_said_in_a_line(tmp_path, monkeypatch, capsys):
    from pindown.cli.main import main

    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "inverse-stability", "--out", str(tmp_path / "file")])
    lines = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 3 and len(lines) == 1 and "cannot write to" in lines[0]

    opened = Path.open

    def refused(path, *args, **settings):
        if path.suffix == ".tmp":
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *args, **settings)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(OSError, match=r"cannot write to .*\(Permission denied\); give another folder"):
        reproduce(roots(), out=tmp_path / "out")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_said_in_a_line(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(OSError, match="cannot write to"):
        reproduce(roots(), out=tmp_path)


def test_two_runs_in_a_folder_refuse_each_other(tmp_path):
    (tmp_path / "roots").mkdir()
    with only_writer(tmp_path / "roots"), pytest.raises(FolderInUseError, match="another run"):
        reproduce(roots(), out=tmp_path)
    assert reproduce(roots(), out=tmp_path).outcome.verdict == "reproduced"


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def unknown(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with pytest.warns(UserWarning, match="without locks"), only_writer(tmp_path):
        pass


DAMAGE = {
    "empty": lambda text: "",
    "cut short": lambda text: text[:-1],
    "no record": lambda text: "[]",
    "a number": lambda text: "3",
    "nested too deep": lambda text: "[" * 200_000,
    "a number too long": lambda text: "9" * 5_000,
    "no text": lambda text: "\udcff",
    "another number": lambda text: text.replace("1.7320", "1.7321"),
    "another cell": lambda text: text.replace('"n": 3', '"n": 7'),
    "another key": lambda text: text.replace('"root"', '"roof"'),
    "infinite": lambda text: re.sub('"seconds": [^,}]*', '"seconds": 1e999', text),
    "no checksum": lambda text: re.sub('"checksum": "[0-9a-f]*", ', "", text),
    "another schema": lambda text: text.replace('"schema": 2', '"schema": 1'),
}


plain = replace(roots(), draw=None)


def results_in(folder):
    return (folder / "roots" / "results.json").read_bytes()


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_cell_that_is_not_as_it_was_written_is_run_again_and_said(damage, undisturbed, tmp_path):
    shutil.copytree(undisturbed.folder, tmp_path, dirs_exist_ok=True)
    path = cell_file(tmp_path / "roots", {"n": 3, "pair": [3, 3]})
    text = path.read_text()
    path.write_bytes(DAMAGE[damage](text).encode(errors="surrogateescape"))
    assert path.read_text(errors="replace") != text
    again = reproduce(plain, out=tmp_path, resume=True)
    assert results_in(tmp_path) == undisturbed.files["results.json"] and len(again.notes) == 1
    assert again.notes[0].startswith("Damaged, so run again: ") and path.name in str(again)
    assert reproduce(plain, out=tmp_path, resume=True).notes == ()


def test_cells_of_the_version_before_are_taken_and_said(undisturbed, tmp_path):
    shutil.copytree(undisturbed.folder, tmp_path, dirs_exist_ok=True)
    for path in finished(tmp_path):
        record = json.loads(path.read_text()) | {"schema": 1}
        del record["checksum"]
        path.write_text(json.dumps(record))
    again = reproduce(plain, out=tmp_path, resume=True)
    assert results_in(tmp_path) == undisturbed.files["results.json"]
    assert len(again.notes) == 1 and again.notes[0].startswith("4 cells of an earlier version have no")


def test_results_that_were_changed_are_not_in_the_ledger(undisturbed, tmp_path):
    shutil.copytree(undisturbed.folder, tmp_path, dirs_exist_ok=True)
    results = tmp_path / "roots" / "results.json"
    assert read_entry(tmp_path, roots()).status == "reproduced"
    for text in (results.read_text().replace("1.7320", "1.7321"), "[" * 200_000):
        results.write_text(text)
        entry = read_entry(tmp_path, roots())
        assert entry.status == "stopped" and "run it again" in entry.words


def test_what_a_killed_run_left_unfinished_is_swept(undisturbed, tmp_path):
    shutil.copytree(undisturbed.folder, tmp_path, dirs_exist_ok=True)
    left = tmp_path / "roots" / "cells" / ".0123456789abcdef.json.4bcc0102.tmp"
    left.write_text("{")
    reproduce(plain, out=tmp_path, resume=True)
    assert not left.exists() and results_in(tmp_path) == undisturbed.files["results.json"]
