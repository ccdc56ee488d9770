"""A complex larger than memory: found sub-box by sub-box and written to disk on the way.

Walks go through a sub-box depth first, so what they hold does not grow with the number of cells;
finished cells are written out whenever their room is full. Cells that a cut goes through are reported by
their patterns alone (see ``stitching.py``), also to disk. When all sub-boxes are done these are sorted
into buckets by a hash of the pattern: equal patterns meet in one bucket, so a bucket at a time is all
that has to fit in memory. Nothing is ever held for the whole complex but its table of contents.
"""

from __future__ import annotations

import warnings
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.atomic_files import only_writer
from pindown.box import Box
from pindown.errors import DataFileError
from pindown.geometry.complex._cells import full_box
from pindown.geometry.subboxes._batches import cells_with_patterns, distinct, is_among
from pindown.geometry.subboxes._shards import (
    NETWORK_FILE,
    as_bytes,
    is_as_written,
    patterns_for,
    read_arrays,
    room_for,
    write_arrays,
    write_cells,
    write_network,
)
from pindown.geometry.subboxes.grid import Grid, Splits, as_grid
from pindown.geometry.subboxes.stitching import parts_of
from pindown.geometry.subboxes.streamed_complex import FORMAT, VERSION, StreamedComplex, read_complex
from pindown.geometry.tuning import MAX_BUCKETS, PATTERNS_PER_BUCKET
from pindown.io.accepting import on_network
from pindown.json_files import CHECKSUM, read_record, write_record
from pindown.network import ReluNetwork
from pindown.parallel import each
from pindown.progress import Report


class _Job(NamedTuple):
    """What every task of a run needs to know."""

    net: ReluNetwork
    grid: Grid
    certified: bool
    room: int
    folder: Path


@on_network
def stream_complex(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    folder: str | PathLike[str],
    *,
    memory: int | float | str = "512MB",
    splits: Splits = 8,
    certified: bool = False,
    n_jobs: int | None = None,
    resume: bool = False,
    progress: Report | None = None,
) -> StreamedComplex:
    """Find every cell of a network on a box and write them to a folder, within a given memory.

    Args:
        net: The network; its input should have few dimensions.
        box: The inputs, full-dimensional.
        folder: Where to write, a new or empty folder that all processes can reach.
        memory: The most that each process may take, its libraries included: bytes, or "512MB". The first
            use ever of the compiled loops takes about 200 MB more, for the compiler.
        splits: How many sub-boxes, in all or along each coordinate; or a :class:`Grid`. They are the
            unit of parallel work and of what an interruption can lose.
        certified: Prove every sign; cells with undecided ones go to exact rational arithmetic.
        n_jobs: Processes; None leaves it to ``pindown.parallel.workers``, -1 is all cores.
        resume: Go on with an unfinished folder: finished sub-boxes are not looked at again, and the
            files end up the same, byte for byte, as those of a run that was never interrupted.
        progress: Called with what is done (sub-boxes, then cells on cuts), tasks done and tasks in all.

    Returns:
        The complex, read from disk as it is used.

    Raises:
        ValueError: If the box or the grid does not fit, the memory is too small, or the folder holds
            something else.
        OSError: If the folder cannot be written to, or another process writes there.

    >>> from tempfile import TemporaryDirectory
    >>> cross = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> with TemporaryDirectory() as folder:
    ...     cells = stream_complex(cross, (-1, 1), folder, splits=4)
    ...     len(cells), round(cells.statistics().volume, 9)
    (4, 4.0)
    """
    domain = full_box(box, net.in_features)
    grid = as_grid(domain, splits, net.in_features)
    limit = as_bytes(memory)
    job = _Job(net, grid, bool(certified), room_for(net, limit), Path(folder))
    with only_writer(job.folder):
        _begin(job, limit, resume)
        tasks = _unfinished(job.folder, [_part_name(i) for i in range(len(grid))])
        where: Any = {"n_jobs": n_jobs, "batch": 1, "bytes_per_task": limit, "progress": progress}
        for _ in each(partial(_write_part, job), tasks, what="sub-boxes", **where):
            pass  # the files are the result
        where["what"] = "cells on cuts"
        _stitch(job, patterns_for(net, limit), where)
    return read_complex(job.folder)


def _begin(job: _Job, limit: int, resume: bool) -> None:
    """Write the plan of a run, or check that it is the one that was begun."""
    plan = {
        "format": FORMAT,
        "version": VERSION,
        "network": job.net.fingerprint,
        "box": [job.grid.box.lower.tolist(), job.grid.box.upper.tolist()],
        "cuts": [list(places) for places in job.grid.cuts],
        "certified": job.certified,
        "memory": limit,
    }
    path = job.folder / "plan.json"
    if path.exists():
        if not resume:
            raise ValueError(
                f"{job.folder} holds a complex, finished or not; go on with resume=True, or give "
                "another folder."
            )
        begun = read_record(path)
        other = [name for name in plan if begun.get(name) != plan[name]]
        if other:
            raise ValueError(
                f"{job.folder} was begun with another {', '.join(other)}; a run can only be taken up "
                "with the same settings."
            )
        return
    if any(entry.name not in (".lock", NETWORK_FILE) for entry in job.folder.iterdir()):
        raise ValueError(f"{job.folder} is not empty and holds no complex; give a new or empty folder.")
    write_network(job.folder / NETWORK_FILE, job.net)
    write_record(path, plan)


def _write_part(job: _Job, i: int) -> None:
    """Write the cells of one sub-box, and last of all the record that they are all there."""
    shards, cuts = [], []
    limits: Any = {"certified": job.certified, "room": job.room, "most_exact": job.room}
    parts = parts_of(job.net, job.grid, i, **limits)
    for k, (cells, patterns) in enumerate(parts):
        if cells.n:
            shards.append(write_cells(job.folder / f"{_part_name(i)}-{k:04d}.npz", cells))
        if len(patterns):
            path = job.folder / f"{_part_name(i)}-{k:04d}-cut.npz"
            cuts.append({**write_arrays(path, {"patterns": patterns}), "patterns": len(patterns)})
    write_record(job.folder / f"{_part_name(i)}.json", {"shards": shards, "cuts": cuts})


def _stitch(job: _Job, most: int, where: Any) -> None:
    """Build the cells that cuts go through, and write the table of contents."""
    records = [_record(job.folder, _part_name(i)) for i in range(len(job.grid))]
    parts = [record for record in records if record is not None]
    cuts = [cut for record in parts for cut in record["cuts"]]
    shards = [shard for record in parts for shard in record["shards"]]
    total = sum(cut["patterns"] for cut in cuts)
    buckets = max(-(-total // most), min(MAX_BUCKETS, -(-total // PATTERNS_PER_BUCKET)))
    tasks = _unfinished(job.folder, [_bucket_name(b) for b in range(buckets)])
    for _ in each(partial(_write_bucket, job, shards, cuts, buckets), tasks, **where):
        pass
    for b in range(buckets):
        shards += (_record(job.folder, _bucket_name(b)) or {})["shards"]
    plan = read_record(job.folder / "plan.json")
    contents = {**plan, "shards": shards, "n_regions": sum(shard["cells"] for shard in shards)}
    write_record(job.folder / "index.json", contents)


def _write_bucket(job: _Job, shards: list[Any], cuts: list[Any], buckets: int, b: int) -> None:
    """Write the cells of one bucket of patterns."""
    words = sum((width + 63) // 64 for width in job.net.hidden_widths)
    found: NDArray[np.uint64] = np.zeros((0, words), np.uint64)
    for cut in cuts:
        patterns = read_arrays(job.folder / cut["file"], ["patterns"], cut["bytes"])["patterns"]
        here = patterns[_bucket_of(patterns, buckets) == b]
        found = distinct(np.concatenate([found, here]))
    # In float64 a cell may end within rounding of a cut: whole on one side of it, a sliver on the other.
    for shard in shards:
        patterns = read_arrays(job.folder / shard["file"], ["patterns"], shard["bytes"])["patterns"]
        found = found[~is_among(found, patterns[_bucket_of(patterns, buckets) == b])]
    written = []
    batches = cells_with_patterns(job.net, job.grid.box, found, certified=job.certified, room=job.room)
    for k, cells in enumerate(batches):
        if cells.n:
            path = job.folder / f"{_bucket_name(b)}-{k:04d}.npz"
            written.append(write_cells(path, cells))
    n = sum(shard["cells"] for shard in written)
    if job.certified and n != len(found):
        raise ArithmeticError("a proved cell was not found again on the whole box; please report this.")
    write_record(job.folder / f"{_bucket_name(b)}.json", {"shards": written})


def _bucket_of(patterns: NDArray[np.uint64], buckets: int) -> NDArray[np.uint64]:
    """Return a number below ``buckets`` for each pattern, the same for equal ones."""
    factors = np.random.default_rng(1).integers(
        0, 2**64, patterns.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = (patterns * factors).sum(axis=1, dtype=np.uint64)
    return (mixed >> np.uint64(32)) % np.uint64(max(buckets, 1))


def _record(folder: Path, name: str) -> dict[str, Any] | None:
    """Return what a finished task wrote down, if all its files are there as they were written."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    try:
        record = read_record(path)
        files = [*record["shards"], *record.get("cuts", [])]
        whole = CHECKSUM in record and all(is_as_written(folder, entry) for entry in files)
    except (DataFileError, OSError, KeyError, TypeError):
        return None
    return record if whole else None


def _unfinished(folder: Path, names: list[str]) -> list[int]:
    """Return the numbers of tasks that are to do; say which were done and are damaged."""
    left = [i for i, name in enumerate(names) if _record(folder, name) is None]
    damaged = [names[i] for i in left if (folder / f"{names[i]}.json").exists()]
    if damaged:
        words = f"{len(damaged)} finished parts in {folder} are damaged, such as {damaged[0]}"
        warnings.warn(f"{words}; they are found again.", stacklevel=4)
    return left


def _part_name(i: int) -> str:
    return f"part-{i:06d}"


def _bucket_name(b: int) -> str:
    return f"stitched-{b:06d}"
