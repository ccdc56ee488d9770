"""Certificates of `verify` and `diff`: how many the checker accepts, their size, what checking costs.

python benchmarks/certificates.py                       the three families and 100 pairs, 60 seconds each
python benchmarks/certificates.py pairs --first 10      these
python benchmarks/certificates.py --budget 5 60         all with 5 seconds, then 60 for what is left open
python benchmarks/certificates.py --recheck             check once more what was written before

The families are those of the verification competition (acasxu, mnist_fc, oval21). The pairs are networks
of ACAS Xu and of the shared models, small random ones, and their copies: units in another order,
rescaled, split in two, rounded to float16, with noise, and with another answer. Seconds are those of
computing, one thread; every proof and every check is a process of its own, start-up included. What is
finished is a line of benchmarks/certificates.jsonl and is not run again with the same budget or less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from vnncomp import BUSY, GRACE, HERE, SHARED, instances

from pindown.affine import Array

RESULTS = HERE / "certificates.jsonl"
FOLDER = HERE / "certificates"  # where the files are kept
CHECKER = HERE.parent / "checker" / "pindown_check.py"
FAMILIES = ("acasxu", "mnist_fc", "oval21")
N_PAIRS = 100
DECIDED = ("holds", "violated", "same", "different")
Layers = list[tuple[Array, Array]]
Result = dict[str, Any]


# ---------------------------------------------------------------------- pairs


def reordered(rng: np.random.Generator, layers: Layers, scaled: bool = False) -> Layers:
    """Put the units of every hidden layer in another order; rescale them, too, if asked for."""
    made: Layers = []
    order, scale = np.arange(layers[0][0].shape[1]), np.ones(layers[0][0].shape[1])
    for i, (W, b) in enumerate(layers):
        n, last = len(b), i == len(layers) - 1
        new = np.arange(n) if last else rng.permutation(n)
        factor = np.ones(n) if last or not scaled else rng.uniform(0.5, 2.0, n)
        made.append(((W[:, order] / scale)[new] * factor[new, None], b[new] * factor[new]))
        order, scale = new, factor[new]
    return made


def rescaled(rng: np.random.Generator, layers: Layers) -> Layers:
    return reordered(rng, layers, scaled=True)


def split(rng: np.random.Generator, layers: Layers) -> Layers:
    """Write five units of the first hidden layer as two that share its weight."""
    (W, b), (V, c), *rest = layers
    which = rng.permutation(len(b))[:5]
    share = rng.uniform(0.2, 0.8, 5)
    V = np.concatenate([V, V[:, which] * share], axis=1)
    V[:, which] *= 1.0 - share
    return [(np.concatenate([W, W[which]]), np.concatenate([b, b[which]])), (V, c), *rest]


def half(rng: np.random.Generator, layers: Layers) -> Layers:
    return [(W.astype(np.float16).astype(float), b.astype(np.float16).astype(float)) for W, b in layers]


def noisy(rng: np.random.Generator, layers: Layers) -> Layers:
    return [
        (W + 1e-5 * rng.standard_normal(W.shape), b + 1e-5 * rng.standard_normal(len(b)))
        for W, b in layers
    ]


def other(rng: np.random.Generator, layers: Layers) -> Layers:
    """Take the largest unit of the last hidden layer away."""
    W, b = layers[-1]
    kept = W.copy()
    kept[:, np.argmax(np.abs(W).sum(axis=0))] = 0.0
    return [*layers[:-1], (kept, b)]


KINDS: dict[str, Callable[[np.random.Generator, Layers], Layers]] = {
    "another order": reordered,
    "rescaled": rescaled,
    "split": split,
    "float16": half,
    "noise": noisy,
    "different": other,
}


def pair(number: int, folder: Path) -> tuple[str, list[Path], tuple[Array, Array], float]:
    """Write both networks of a pair; return what it is, the files, the box and the tolerance."""
    import pindown as pn
    from pindown.affine import dense

    rng = np.random.default_rng(number)
    kind = list(KINDS)[number % len(KINDS)]
    source = ("acasxu", "small", "tll", "small", "mnist_256x4")[number // len(KINDS) % 5]
    if source == "small":
        sizes = [3, *rng.integers(5, 30, int(rng.integers(1, 4))).tolist(), 2]
        layers = [
            (rng.standard_normal((m, n)) / np.sqrt(n), 0.1 * rng.standard_normal(m))
            for n, m in pairwise(sizes)
        ]
    else:
        i, j = divmod(number * 7 % 45, 9)
        files = {
            "acasxu": SHARED / f"acasxu/ACASXU_run2a_{i + 1}_{j + 1}_batch_2000.onnx.gz",
            "tll": SHARED.parent / f"models/tll_2d_{('n16_0', 'n16_1', 'n24_0')[number % 3]}.onnx.gz",
            "mnist_256x4": SHARED.parent / "models/mnist_256x4.onnx.gz",
        }
        layers = [(dense(W), b) for W, b in pn.load(files[source]).relu_network().layers]
    d = layers[0][0].shape[1]
    middle, radius = (rng.uniform(0, 1, d), 0.004) if d > 10 else (np.zeros(d), 0.5)
    box = np.clip(middle - radius, -0.5, 1.0), np.clip(middle + radius, -0.5, 1.0)
    made = (layers, KINDS[kind](rng, layers))
    paths = [folder / f"{number}_{side}.onnx" for side in "ab"]
    nets = [pn.ReluNetwork.from_layers(each) for each in made]
    for net, path in zip(nets, paths, strict=True):
        net.save(path, dtype="float64")
    points = rng.uniform(*box, (2000, d))
    apart = float(np.abs(nets[0](points) - nets[1](points)).max())
    tolerance = 2.0 * apart + 1e-6 if kind in ("float16", "noise") else 1e-5
    return f"{source}, {kind}", paths, box, tolerance


# ---------------------------------------------------------------------- running


def jobs(families: list[str]) -> Iterator[tuple[str, str, list[Path], str]]:
    """Yield name, family, models and property (or number of the pair) of everything there is to do."""
    for family in families:
        if family == "pairs":
            for number in range(N_PAIRS):
                files = [FOLDER / f"{number}_{side}.onnx" for side in "ab"]
                yield f"pair {number}", family, files, str(number)
            continue
        for row in instances([family]):
            name = f"{Path(row['model']).name} {Path(row['property']).name}"
            yield name, family, [SHARED / row["model"]], row["property"]


def prove(model: str, what: str, proof: str, budget: float) -> Result:
    """Decide one question in this process and write its certificate."""
    time.monotonic = time.process_time
    import pindown as pn

    options: dict[str, Any] = {"budget": budget, "n_jobs": 1, "certificate": proof}
    if what.isdecimal():
        kind, paths, box, tolerance = pair(int(what), Path(proof).parent)
        began = time.process_time()  # the pair was made before
        answer: Any = pn.diff(*paths, box=box, tol=tolerance, rtol=0.0, **options)
    else:
        kind, began = "", 0.0
        answer = pn.verify(model, SHARED / what, **options)
    return {
        "what": kind,
        "verdict": answer.verdict,
        "proof_seconds": round(time.process_time() - began, 3),
        "method": getattr(answer, "method", ""),
        "note": answer.certificate_note,
        "bytes": Path(proof).stat().st_size if answer.certificate else 0,
    }


def proved_apart(models: list[Path], what: str, proof: Path, budget: float) -> Result:
    words = [
        sys.executable,
        __file__,
        "--one",
        str(models[0]),
        what,
        str(proof),
        "--budget",
        str(budget),
    ]
    limit = BUSY * (1.5 * budget + GRACE)
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=limit)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return {"verdict": "error", "note": reason, "bytes": 0}
    return dict(json.loads(done.stdout))


def checked(models: list[Path], proof: Path, prop: Path | None) -> Result:
    """Run the checker as strangers do; return its last words and the seconds of its process."""
    words = [sys.executable, str(CHECKER), str(proof), *map(str, models)]
    words += [] if prop is None else ["--property", str(prop)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = (done.stdout.strip().splitlines() or [done.stderr[-200:]])[-1]
    return {"accepted": done.returncode == 0, "said": last, "check_seconds": round(seconds, 3)}


def kept(path: Path) -> dict[str, Result]:
    """Return what was run, by name; the last line of each counts."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def run_all(families: list[str], first: int | None, budget: float, recheck: bool) -> None:
    before, counts = kept(RESULTS), dict.fromkeys(families, 0)
    FOLDER.mkdir(exist_ok=True)
    for name, family, models, what in jobs(families):
        counts[family] += 1
        row = before.get(name) or {"name": name, "family": family, "budget": -1.0, "verdict": ""}
        run = row["budget"] >= budget or row["verdict"] in DECIDED
        if (name in before if recheck else run) != recheck or counts[family] > (first or counts[family]):
            continue
        proof = FOLDER / f"{name.replace(' ', '_')}.proof"
        if not recheck:
            proof.unlink(missing_ok=True)
            row = {"name": name, "family": family, "budget": budget}
            row |= proved_apart(models, what, proof, budget)
        if row["bytes"]:
            row |= checked(models, proof, None if what.isdecimal() else SHARED / what)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        said = row.get("said", row["note"])
        print(f"{name}: {row['verdict']}, {row.get('proof_seconds')} s; {said}", file=sys.stderr)


# ---------------------------------------------------------------------- what came out


def start_up() -> float:
    """Return the seconds of computing that the checker needs to say that a file is no certificate."""
    with tempfile.NamedTemporaryFile() as nothing:
        found = [checked([Path(nothing.name)], Path(nothing.name), None) for _ in range(5)]
    return min(float(row["check_seconds"]) for row in found)


def run() -> list[tuple[str, str]]:
    """Return the rows of the table, of what was run before."""
    rows, begin = list(kept(RESULTS).values()), start_up()
    table = []
    for family in dict.fromkeys(row["family"] for row in rows):
        mine = [row for row in rows if row["family"] == family]
        decided = [row for row in mine if row["verdict"] in DECIDED]
        written = [row for row in decided if row["bytes"]]
        if not written:
            continue
        ratios = sorted(row["check_seconds"] / row["proof_seconds"] for row in written)
        beyond = sorted((row["check_seconds"] - begin) / row["proof_seconds"] for row in written)
        sizes = sorted(row["bytes"] / 1000 for row in written)
        middle, most = len(written) // 2, max(row["budget"] for row in mine)
        table.append(
            (
                family,
                f"{len(decided)} of {len(mine)} decided in {most:g} s, {len(written)} certificates, "
                f"{sum(row['accepted'] for row in written)} accepted; checking / proving (CPU): "
                f"median {ratios[middle]:.2f}, largest {ratios[-1]:.1f} ({beyond[-1]:.1f} without "
                f"start-up, {begin:.2f} s); kB: median {sizes[middle]:.1f}, largest {sizes[-1]:.0f}",
            )
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Certificates, and what checking them costs.")
    parser.add_argument("families", nargs="*", help=f"of {', '.join(FAMILIES)}, pairs; all if none")
    parser.add_argument(
        "--budget", type=float, nargs="+", default=[60.0], help="CPU seconds for each proof, in turn"
    )
    parser.add_argument("--first", type=int, default=None, help="only so many of each family")
    parser.add_argument("--recheck", action="store_true", help="check what was written before")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        model, what, proof = given.families
        print(json.dumps(prove(model, what, proof, given.budget[0])))
        return
    try:
        for budget in given.budget:
            run_all(given.families or [*FAMILIES, "pairs"], given.first, budget, given.recheck)
    except KeyboardInterrupt:
        print("interrupted: what is finished is kept", file=sys.stderr)
    for name, words in run():
        print(f"{name}: {words}")


if __name__ == "__main__":
    main()
