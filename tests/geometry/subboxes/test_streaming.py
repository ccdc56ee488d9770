"""Complexes on disk: the same cells, files that survive interruptions, strangers' files, and memory."""

import io
import json
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.atomic_files import FolderInUseError, only_writer
from pindown.errors import DataFileError
from pindown.geometry import Grid, polyhedral_complex, read_complex, stream_complex
from pindown.geometry.subboxes import _shards as folder_module
from pindown.geometry.subboxes import streaming
from pindown.geometry.subboxes._shards import as_bytes
from pindown.geometry.tuning import LIBRARY_BYTES
from pindown.json_files import sealed
from tests.geometry.oracles import cube, degenerate_network, random_network, reference_network

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tight(monkeypatch):
    """Room for a few cells and patterns only, so that small complexes fill many files."""
    monkeypatch.setattr(streaming, "room_for", lambda net, memory: 16)
    monkeypatch.setattr(streaming, "patterns_for", lambda net, memory: 12)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def streamed_pairs(cells, memory):
    """Neighbours as sets of patterns; each pair ascending and once."""
    rows = [row.tobytes() for part in cells.shards() for row in part.patterns]
    found = [(int(i), int(j)) for pairs, _ in cells.neighbours(memory=memory) for i, j in pairs]
    assert all(i < j for i, j in found) and len(set(found)) == len(found)
    return {frozenset((rows[i], rows[j])) for i, j in found}


@pytest.mark.parametrize(
    ("kind", "d"),
    [("zero_bias", 1), ("zero_row_deep", 2), ("handmade", 3), ("opposite", 3), ("dead", 4)],
)
def test_equal_to_the_complex_in_memory(tmp_path, tight, kind, d):
    widths = (7, 6) if d < 3 else (4, 4)
    net = degenerate_network(kind, d, np.random.default_rng(60 + d), widths=widths)
    whole = polyhedral_complex(net, cube(d))
    grid = Grid(cube(d), ((0.0,), *[(0.0,)] * min(d - 1, 1), *[()] * (d - 2)))
    cells = stream_complex(net, cube(d), tmp_path, splits=grid)
    assert len(cells) == whole.n_regions == sum(len(part) for part in cells.shards())
    assert d == 1 or len(cells.files) > 1
    loaded = cells.load()
    assert {row.tobytes() for row in loaded.patterns} == {row.tobytes() for row in whole.patterns}
    assert loaded.n_pieces == whole.n_pieces and len(loaded.vertices) == len(whole.vertices)
    rows = [row.tobytes() for row in whole.patterns]
    truth = {frozenset((rows[i], rows[j])) for i, j in whole.neighbours}
    for memory in ("1MB", 400):  # one pass over the files, and many
        assert streamed_pairs(cells, memory) == truth


def test_statistics(tmp_path, tight):
    net = reference_network((2, 10, 10, 3), 4)
    whole = polyhedral_complex(net, cube(2))
    cells = stream_complex(net, cube(2), tmp_path, splits=(2, 3))
    seen = cells.statistics()
    assert seen.n_regions == whole.n_regions and seen.volume == pytest.approx(4, rel=1e-12)
    norms = np.linalg.norm(whole.A, 2, axis=(1, 2))
    np.testing.assert_allclose(seen.slope_range, (norms.min(), norms.max()))
    assert seen.mean_slope == pytest.approx(norms @ whole.volumes / 4)
    np.testing.assert_allclose(seen.volume_range, (whole.volumes.min(), whole.volumes.max()), rtol=1e-6)
    assert (seen.units_on == np.bincount(whole.patterns.sum(axis=1), minlength=21)).all()
    values = net(whole.vertices)  # an affine function is extreme at a vertex of its cell
    np.testing.assert_allclose(seen.output_lower, values.min(axis=0), atol=1e-9)
    np.testing.assert_allclose(seen.output_upper, values.max(axis=0), atol=1e-9)
    np.testing.assert_allclose(np.diag(net(seen.upper_at)), seen.output_upper, atol=1e-9)
    np.testing.assert_allclose(np.diag(net(seen.lower_at)), seen.output_lower, atol=1e-9)
    assert "slopes" in str(seen)


def test_cells_one_by_one(tmp_path, tight):
    net = random_network(np.random.default_rng(5), 2, (6, 5))
    cells = stream_complex(net, cube(2), tmp_path)
    regions = list(cells)
    assert len(regions) == len(cells) and sum(r.volume for r in regions) == pytest.approx(4)
    for i in (0, len(cells) // 2, -1):
        assert (cells.region(i).pattern == regions[i].pattern).all()
    assert sum(float(v.sum()) for v in cells.volumes()) == pytest.approx(4)
    with pytest.raises(IndexError):
        cells.region(len(cells))
    again = read_complex(tmp_path)
    assert again.net == net and again.box == cube(2) and repr(again) == repr(cells)


def test_certified(tmp_path, tight):
    net = degenerate_network("integer", 2, np.random.default_rng(7), widths=(5, 4))
    cells = stream_complex(
        net, cube(2), tmp_path, splits=Grid(cube(2), ((0.0,), (0.0,))), certified=True
    )
    assert cells.certified and len(cells) == polyhedral_complex(net, cube(2), certified=True).n_regions


def test_interrupted_and_resumed_is_byte_identical(tmp_path, tight):
    net = random_network(np.random.default_rng(6), 3, (5, 5))
    stream_complex(net, cube(3), tmp_path / "whole", splits=8)
    wanted = contents(tmp_path / "whole")

    calls = []

    def stop(what, done, total):
        calls.append(total)
        if len(calls) in (2, 5, 10):  # the last one among cells on cuts, all sub-boxes being done
            raise KeyboardInterrupt

    for resume in (False, True, True):
        with pytest.raises(KeyboardInterrupt):
            stream_complex(net, cube(3), tmp_path / "cut", splits=8, resume=resume, progress=stop)
        with pytest.raises(DataFileError, match="not finished"):
            read_complex(tmp_path / "cut")
    assert len(calls) == 10 and len(list((tmp_path / "cut").glob("part-*.json"))) == 8
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cut").glob("part-*")}
    stream_complex(net, cube(3), tmp_path / "cut", splits=8, resume=True)
    assert contents(tmp_path / "cut") == wanted
    assert times == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cut").glob("part-*")}
    # Files that were cut short or changed are noticed, and their sub-box or bucket is done again.
    for pattern, damage in {
        "part-000003-*.npz": lambda data: data[:-9],
        "part-000004-*.npz": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        "part-000005.json": lambda data: data.replace(b'"cells": ', b'"cells": 1'),
        "stitched-*.json": lambda data: b"[" * 200_000,
    }.items():
        victim = next((tmp_path / "cut").glob(pattern))
        victim.write_bytes(damage(victim.read_bytes()))
    with pytest.warns(UserWarning, match="[13] finished parts in .* are damaged, such as") as said:
        stream_complex(net, cube(3), tmp_path / "cut", splits=8, resume=True)
    assert contents(tmp_path / "cut") == wanted and len(said) == 2


KILLED = """
import os, signal, sys
from tests.geometry.oracles import cube, reference_network
from pindown.geometry import stream_complex
def die(what, done, total):
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)
stream_complex(reference_network((2, 8, 8, 1), 0), cube(2), sys.argv[1], splits=6, progress=die)
"""


def test_killed_and_resumed_is_byte_identical(tmp_path):
    net = reference_network((2, 8, 8, 1), 0)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "cut")]
    died = subprocess.run(command, cwd=ROOT, timeout=300, check=False)
    assert died.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "cut").glob("part-*.json"))) == 3
    stream_complex(net, cube(2), tmp_path / "cut", splits=6, resume=True)  # the lock died as well
    stream_complex(net, cube(2), tmp_path / "whole", splits=6)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_processes_write_the_same_files(tmp_path):
    net = reference_network((2, 8, 8, 1), 0)
    stream_complex(net, cube(2), tmp_path / "one", splits=6)
    stream_complex(net, cube(2), tmp_path / "two", splits=6, n_jobs=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_full_disk_keeps_what_was_finished(tmp_path, tight, monkeypatch):
    net = random_network(np.random.default_rng(6), 2, (6, 6))
    real, calls = np.savez, []

    def savez(*args, **arrays):
        calls.append(1)
        if len(calls) == 12:
            raise OSError(28, "No space left on device")
        real(*args, **arrays)

    monkeypatch.setattr(folder_module.np, "savez", savez)
    with pytest.raises(OSError, match=r"no space left in .*then resume"):
        stream_complex(net, cube(2), tmp_path / "full", splits=6)
    kept = list((tmp_path / "full").glob("part-*.json"))
    assert kept and not list((tmp_path / "full").glob(".*.tmp"))
    stream_complex(net, cube(2), tmp_path / "full", splits=6, resume=True)
    stream_complex(net, cube(2), tmp_path / "whole", splits=6)
    assert contents(tmp_path / "full") == contents(tmp_path / "whole")


def test_one_writer_at_a_time(tmp_path):
    net = random_network(np.random.default_rng(6), 2, (3,))
    with only_writer(tmp_path), pytest.raises(FolderInUseError, match="another run"):
        stream_complex(net, cube(2), tmp_path)
    assert len(stream_complex(net, cube(2), tmp_path)) == polyhedral_complex(net, cube(2)).n_regions


def test_folders_that_do_not_fit(tmp_path):
    net = random_network(np.random.default_rng(6), 2, (3,))
    stream_complex(net, cube(2), tmp_path / "a", splits=2)
    with pytest.raises(ValueError, match="holds a complex"):
        stream_complex(net, cube(2), tmp_path / "a", splits=2)
    with pytest.raises(ValueError, match="another cuts"):
        stream_complex(net, cube(2), tmp_path / "a", splits=3, resume=True)
    with pytest.raises(ValueError, match="another network"):
        stream_complex(2.0 * net, cube(2), tmp_path / "a", splits=2, resume=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="not empty"):
        stream_complex(net, cube(2), tmp_path / "b")
    with pytest.raises(OSError, match="cannot write to"):
        stream_complex(net, cube(2), tmp_path / "b" / "thesis.tex")
    with pytest.raises(DataFileError, match="holds no complex"):
        read_complex(tmp_path / "b")


@pytest.mark.parametrize("memory", ["lots", "5 apples", -1, float("nan"), "100MB", LIBRARY_BYTES])
def test_memory_that_cannot_be(tmp_path, memory):
    net = random_network(np.random.default_rng(6), 2, (3,))
    with pytest.raises(ValueError, match="memory"):
        stream_complex(net, cube(2), tmp_path, memory=memory)
    with pytest.raises(TypeError, match="memory"):
        as_bytes(None)


def _replaced(arrays, name, value):
    return {**arrays, name: value}


DAMAGES = {
    "pickled objects": lambda a: _replaced(a, "keys", np.array([{}] * len(a["keys"]), object)),
    "label beyond": lambda a: _replaced(a, "facets", a["facets"] + np.int32(1_000)),
    "label below": lambda a: _replaced(a, "facets", -1 - a["facets"]),
    "starts descend": lambda a: _replaced(a, "vertex_starts", a["vertex_starts"][::-1].copy()),
    "starts too far": lambda a: _replaced(a, "facet_starts", a["facet_starts"] * 2),
    "masks beyond": lambda a: _replaced(a, "masks", a["masks"] | np.uint64(1 << 63)),
    "other dtype": lambda a: _replaced(a, "coords", a["coords"].astype(np.float32)),
    "missing array": lambda a: {name: v for name, v in a.items() if name != "maps"},
    "fewer cells": lambda a: _replaced(a, "keys", a["keys"][:-1]),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    where = tmp_path_factory.mktemp("small")
    stream_complex(random_network(np.random.default_rng(6), 3, (4, 3)), cube(3), where, splits=1)
    return where


def _copy_with(small, tmp_path, data):
    """A copy of a folder whose one file of cells holds other bytes, and whose contents say so."""
    for name, content in contents(small).items():
        (tmp_path / name).write_bytes(content)
    index = json.loads((tmp_path / "index.json").read_text())
    shard = index["shards"][0]
    (tmp_path / shard["file"]).write_bytes(data)
    shard["bytes"] = len(data)
    (tmp_path / "index.json").write_text(json.dumps(sealed(index)))
    return read_complex(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_arrays_are_refused(small, tmp_path, damage):
    name = read_complex(small).files[0][0]
    with np.load(small / name) as file:
        arrays = dict(file)
    data = io.BytesIO()
    np.savez(data, **DAMAGES[damage](arrays))
    with pytest.raises(DataFileError):
        _copy_with(small, tmp_path, data.getvalue()).shard(0)


@pytest.mark.parametrize("trick", ["bomb", "claim", "cut short", "no zip"])
def test_files_that_claim_too_much_are_refused(small, tmp_path, trick):
    original = (small / read_complex(small).files[0][0]).read_bytes()
    data = io.BytesIO()
    if trick == "bomb":
        with zipfile.ZipFile(io.BytesIO(original)) as old, zipfile.ZipFile(
            data, "w", zipfile.ZIP_DEFLATED
        ) as new:  # fmt: skip
            for entry in old.namelist():
                new.writestr(entry, old.read(entry))
    elif trick == "claim":
        huge = original.replace(b"'shape': (", b"'shape': (9999999999, ", 1)
        data.write(huge[: len(original)])
    elif trick == "cut short":
        data.write(original[: len(original) // 2])
    else:
        data.write(b"not a zip file at all")
    with pytest.raises(DataFileError):
        _copy_with(small, tmp_path, data.getvalue()).shard(0)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"format": "something else"},
        {"n_regions": 3},
        {"box": [[0, 0, 0], [1, float("nan"), 1]]},
        {"box": [[0], [1]]},
        {"shards": 5},
        {"shards": [{"file": "../../etc/passwd", "bytes": 1, "cells": 1}]},
        {"shards": [{"file": "x.npz", "bytes": "many", "cells": 1}]},
        {"network": "0" * 64},
    ],
)
def test_tables_of_contents_that_lie_are_refused(small, tmp_path, change):
    for name, content in contents(small).items():
        (tmp_path / name).write_bytes(content)
    index = json.loads((tmp_path / "index.json").read_text())
    for text in (
        json.dumps(sealed({**index, **change})),
        json.dumps({**index, **change}),
        200_000 * "[",
    ):
        (tmp_path / "index.json").write_text(text)
        with pytest.raises(DataFileError):
            read_complex(tmp_path)


def test_network_without_units(tmp_path):
    net = ReluNetwork.from_layers([([[1.0, 2.0]], [3])])
    cells = stream_complex(net, (0, 1), tmp_path, splits=4)
    assert len(cells) == 1 and cells.statistics().output_upper.tolist() == [6]


PEAK = """
import sys
from tests.geometry.oracles import cube, reference_network
from pindown.geometry import polyhedral_complex, stream_complex
widths = eval(sys.argv[3])
net, box = reference_network(widths, 0), cube(widths[0])
if sys.argv[1] == "whole":
    n = polyhedral_complex(net, box).n_regions
else:
    cells = stream_complex(net, box, sys.argv[1], memory=sys.argv[2], splits=8)
    n = len(cells)
    assert sum(len(part) for part in cells.shards()) == n
# Not getrusage: what it says of a process includes the one that started it.
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(n, 1024 * int(peak[0].split()[1]))
"""


def check_peak(tmp_path, memory, widths):
    """The stream stays under a cap that the complex itself does not fit in."""
    stream_complex(reference_network((5, 3, 3, 1), 0), cube(5), tmp_path / "warm")  # compiles
    seen = []
    for where in ("whole", str(tmp_path / "cells")):
        command = [sys.executable, "-c", PEAK, where, memory, repr(widths)]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
        )
        assert done.returncode == 0, done.stderr
        seen.append([int(word) for word in done.stdout.split()])
    (n, whole), (streamed_n, streamed) = seen
    assert n == streamed_n
    assert streamed < as_bytes(memory) < whole


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the way Linux counts it")
def test_memory_stays_under_the_cap(tmp_path):
    check_peak(tmp_path, "300MB", (5, 16, 16, 1))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the way Linux counts it")
def test_memory_stays_under_half_of_what_the_complex_takes(tmp_path):
    check_peak(tmp_path, "350MB", (5, 20, 20, 1))


@pytest.mark.slow
def test_dask_cluster_gives_the_same_complex(tmp_path):
    pytest.importorskip("distributed")
    from pindown.geometry import complex_by_parts
    from pindown.parallel import workers

    net = reference_network((3, 24, 24, 1), 0)
    one = complex_by_parts(net, cube(3), 64, n_jobs=1)
    stream_complex(net, cube(3), tmp_path / "one", splits=64, n_jobs=1)
    with workers(n_jobs=2, cluster="local"):
        two = complex_by_parts(net, cube(3), 64)
        stream_complex(net, cube(3), tmp_path / "two", splits=64)
    for name in ("coords", "facets", "masks", "patterns", "maps", "vertex_starts", "keys"):
        assert (getattr(one.cells, name) == getattr(two.cells, name)).all()
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one.n_regions == polyhedral_complex(net, cube(3)).n_regions
