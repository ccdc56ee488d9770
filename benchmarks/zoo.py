"""Models as people have them: the cost of reading, evaluating and writing them, and how they agree.

The files are those of tests/zoo, kept between runs in the system's temporary folder. Read in a fresh
process: seconds after the import, peak memory of the whole process. Evaluated with one thread beside
torch in float64. Agreement is with onnxruntime, as a part of the output's size, on 200 inputs (20 of
224 x 224). Effect: the size of the difference as a part of what the integers changed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the zoo is part of the tests

from tests.zoo.comparing import IntegerGap, compare, cost_of_evaluating, cost_of_reading  # noqa: E402
from tests.zoo.exports import FLOATS, INTEGERS, Shelf  # noqa: E402
from tests.zoo.models import ZOO  # noqa: E402

import pindown as pn  # noqa: E402
from pindown.errors import ModelFileError, UnsupportedModelError  # noqa: E402

SHARED = ROOT.parent / "shared"
TIMED = ("lenet", "resnet_20", "mobilenet", "transformer", "vit", "resnet_18", "resnet_50")
ROWS, ROWS_OF_LARGE = 200, 20
REFUSALS = (ModelFileError, UnsupportedModelError)


def cost_rows(shelf: Shelf) -> Iterator[tuple[str, str]]:
    for name in TIMED:
        path = shelf.file(name, "old")
        seconds, megabytes = cost_of_reading(path)
        model = pn.load(path)
        copy = shelf.folder / "copy.onnx"
        model.save(copy)
        size = path.stat().st_size
        yield (
            f"{name}, old export of {size / 1e6:.2f} MB",
            f"{model.n_parameters:,} parameters, {model.multiply_adds / 1e6:,.1f} M multiply-adds; "
            f"read in {seconds:.2f} s, {megabytes:.0f} MB; "
            f"written: {copy.stat().st_size / size:.2f} of its size",
        )
        copy.unlink()
        ours, theirs = cost_of_evaluating(name, path)
        alone, beside = cost_of_evaluating(name, path, torch=False)
        yield (
            f"{name}, 4 inputs, against torch float64",
            f"{ours:.3f} s against {theirs:.3f} s, ratio {ours / theirs:.2f}; "
            f"without torch {alone / beside:.2f}",
        )


def agreement_rows(shelf: Shelf) -> Iterator[tuple[str, str]]:
    for kind in (*FLOATS, "float16", *INTEGERS):
        gaps, refused = {}, {}
        for name, entry in ZOO.items():
            try:
                model = pn.load(shelf.file(name, kind))
            except REFUSALS as error:
                refused[name] = str(error)
            else:
                gaps[name] = compare(model, shelf, name, kind, ROWS_OF_LARGE if entry.large else ROWS)
        yield f"{kind}: {len(gaps)} of {len(ZOO)} read", agreement(gaps) + not_read(refused)


def agreement(gaps: dict[str, float | IntegerGap]) -> str:
    """Say in words how closely models agree with onnxruntime."""
    floats = {name: found for name, found in gaps.items() if isinstance(found, float)}
    words = []
    if floats:
        worst = max(floats, key=floats.__getitem__)
        words.append(f"largest gap {floats[worst]:.1e} ({worst})")
    for name, found in gaps.items():
        if isinstance(found, IntegerGap):
            steps = "" if found.steps is None else f", {found.steps:.0f} steps"
            words.append(f"{name} {found.equal:.0%} of inputs equal{steps}, effect {found.effect:.3f}")
    return "; ".join(words)


def not_read(refused: dict[str, str]) -> str:
    return "".join(f"; {name} not read: {message}" for name, message in refused.items())


def public_rows() -> Iterator[tuple[str, str]]:
    for folder in ("models", "vnncomp"):
        paths = sorted((SHARED / folder).rglob("*.onnx*"))
        refused = {}
        start = time.process_time()
        for path in paths:
            try:
                pn.load(path)
            except REFUSALS as error:
                refused[path.name] = str(error)
        if paths:
            seconds = time.process_time() - start
            yield (
                f"public files, {folder}: {len(paths) - len(refused)} of {len(paths)} read",
                f"{seconds:.1f} s{not_read(refused)}",
            )


def run() -> list[tuple[str, str]]:
    shelf = Shelf(Path(tempfile.gettempdir()) / "pindown-zoo")
    return [*cost_rows(shelf), *agreement_rows(shelf), *public_rows()]


if __name__ == "__main__":
    for what, result in run():
        print(f"{what}: {result}")
