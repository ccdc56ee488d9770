"""Pairs of a network and its copy with noise on every number: do their outputs stay close on a box?

python benchmarks/pairs.py                 all 50, 100 seconds each
python benchmarks/pairs.py 10 26 --again   these, once more

The pairs are made as those of the competition's isomorphic_acasxu are: every number of one of the 45
ACAS Xu networks, those taken from the inputs included, gets normal noise of deviation 0.001, and is
stored as float32. That file asks whether outputs differ by more than 0.05 somewhere in its
box; its ``and`` of both sides cannot be met, so that here the ten sides are ten unsafe sets.

Every pair runs in a process of its own. What is finished is written at once, as a line of
benchmarks/pairs.jsonl, and is not run again unless --again is given.

PINDOWN_SHARED names the folder that holds vnncomp/acasxu, if it is not beside the clone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from vnncomp import GRACE, HERE, SHARED, late

from pindown import Model, Property, load, verify
from pindown.verification import UnsafeSet

RESULTS = HERE / "pairs.jsonl"
N_PAIRS = 50
DEVIATION = 0.001
TOLERANCE = 0.05
LOWER = np.array([0.6, -0.5, -0.5, 0.45, -0.5])
UPPER = np.array([0.679857769, 0.5, 0.5, 0.5, -0.45])
Result = dict[str, Any]


def pair(number: int) -> tuple[str, Model, Model]:
    """Return the name of a network, the network, and its copy with noise of this seed."""
    first, second = divmod(number % 45, 9)
    name = f"ACASXU_run2a_{first + 1}_{second + 1}_batch_2000.onnx.gz"
    model = load(SHARED / "acasxu" / name)
    return name, model, with_noise(model, number)


def with_noise(model: Model, seed: int) -> Model:
    """Add noise to every number of a model, and round to float32."""
    rng = np.random.default_rng(seed)
    nodes = []
    for node in model.nodes:
        numbers = {k: v for k, v in vars(node.operation).items() if isinstance(v, np.ndarray)}
        moved = {
            k: (v + rng.normal(0.0, DEVIATION, v.shape)).astype(np.float32).astype(np.float64)
            for k, v in numbers.items()
        }
        nodes.append(node._replace(operation=replace(node.operation, **moved)))  # type: ignore[type-var]
    return replace(model, nodes=tuple(nodes))


def close() -> Property:
    """Return the property that no output of one differs by more than the tolerance from the other's."""
    rows = np.concatenate([np.eye(5), -np.eye(5)], axis=1)
    unsafe = tuple(
        UnsafeSet(LOWER, UPPER, sign * rows[k : k + 1], np.array([-TOLERANCE]), strict=np.array([True]))
        for k in range(5)
        for sign in (1.0, -1.0)
    )
    own = np.arange(5)
    text = f"no output differs by more than {TOLERANCE:g}"
    return Property(unsafe, (5, 5), (5, 5), (own, own), (0, 1), text)


def decide(number: int, budget: float, jobs: int | None) -> Result:
    """Decide one pair in this process."""
    name, f, g = pair(number)
    began = time.monotonic()
    answer = verify((f, g), close(), budget=budget, n_jobs=jobs)
    return {
        "pair": number,
        "network": name,
        "budget": budget,
        "verdict": answer.verdict,
        "seconds": round(time.monotonic() - began, 3),
        "cpu_seconds": round(time.process_time(), 3),
        "method": answer.method,
        "parts": answer.n_parts,
        "open_sets": answer.open_sets,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def decided_apart(number: int, budget: float, jobs: int | None) -> Result:
    """Decide one pair in a process of its own; what goes wrong there is a result, too."""
    words = [sys.executable, __file__, "--one", str(number), "--budget", str(budget)]
    words += [] if jobs is None else ["--jobs", str(jobs)]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=1.5 * budget + GRACE
        )
        if done.returncode == 0:
            return dict(json.loads(done.stdout))
        reason = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
    except subprocess.TimeoutExpired:
        reason = "it did not end and was stopped"
    return {"pair": number, "budget": budget, "verdict": "error", "seconds": 0.0, "method": reason}


def kept(path: Path, budget: float) -> dict[int, Result]:
    """Return what was run with this budget; of several runs of one pair the last."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row["pair"]: row for row in rows if row["budget"] == budget}


def main() -> None:
    parser = argparse.ArgumentParser(description="Pairs of a network and its copy with noise.")
    parser.add_argument("pairs", nargs="*", type=int, help="all if none is named")
    parser.add_argument("--budget", type=float, default=100.0, help="seconds for each")
    parser.add_argument("--jobs", type=int, default=None, help="threads; all cores if not given")
    parser.add_argument("--again", action="store_true", help="run what was run before, too")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of results")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    chosen = given.pairs or list(range(N_PAIRS))
    if given.one:
        print(json.dumps(decide(chosen[0], given.budget, given.jobs)))
        return
    before = {} if given.again else kept(given.results, given.budget)
    for number in chosen:
        if number in before:
            continue
        row = decided_apart(number, given.budget, given.jobs)
        with given.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{number}: {row['verdict']}, {row['seconds']:.1f} s, {row.get('parts', 0):,} parts, "
            f"{row['method']}{', late' if late(row) else ''}",
            file=sys.stderr,
        )
    rows = [row for number, row in kept(given.results, given.budget).items() if number in chosen]
    counts = {word: sum(row["verdict"] == word for row in rows) for word in ("holds", "violated")}
    print(
        f"{sum(counts.values())} of {len(rows)} decided ({counts['holds']} hold, {counts['violated']} "
        f"violated), {sum(row.get('cpu_seconds', 0.0) for row in rows):.0f} CPU s"
    )


if __name__ == "__main__":
    main()
