"""Problems of the verification competition with known answers: what is decided, how fast, what is wrong.

python benchmarks/vnncomp.py                             all, 60 seconds each: hours
python benchmarks/vnncomp.py acasxu safenlp --budget 5   these families
python benchmarks/vnncomp.py --table --budget 60         only the table, of what was run with 60 seconds

Every instance runs in a process of its own, one after the other, so that memory is given back. What is
finished is written at once, as a line of benchmarks/vnncomp.jsonl, and is not run again unless --again
is given. At the end the table is printed and docs/verification-results.md is written.

PINDOWN_SHARED names the folder that holds vnncomp/instances.csv, if it is not beside the clone.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from run import machine

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("PINDOWN_SHARED", HERE.parents[1] / "shared")) / "vnncomp"
RESULTS = HERE / "vnncomp.jsonl"
PAGE = HERE.parent / "docs/verification-results.md"
DECIDED = ("sat", "unsat")
BUSY = 100.0  # how many jobs may share a core where seconds of computing count: 25 did
GRACE = (
    60.0  # seconds beyond one and a half budgets before a process is ended: large files are read first
)
# What the families are about, for the table; those of the list's file come in its order.
ABOUT = {
    "acasxu": "collision avoidance, 5 inputs, 300 ReLUs",
    "rl_benchmarks": "small controllers",
    "reach_prob_density": "small controllers, reachable sets",
    "tllverifybench": "two-level lattices, 2 inputs",
    "safenlp": "sentence embeddings, 30 inputs",
    "cora": "dense, up to 784 inputs",
    "mnist_fc": "dense, 784 inputs, up to 1,536 ReLUs",
    "eran": "dense and wide, ReLU and sigmoid",
    "oval21": "convolutional, CIFAR-10",
    "marabou-cifar10": "convolutional, CIFAR-10",
    "cifar10_resnet": "residual, CIFAR-10",
    "sri_resnet_a": "residual, CIFAR-10",
    "collins_rul_cnn": "convolutional, remaining life of engines",
    "metaroom": "convolutional, camera motion",
    "cifar_biasfield": "convolutional, a field of brightness",
    "linearizenn": "controllers with disjunctions",
    "nn4sys": "learned indexes, many boxes",
    "dist_shift": "dense with sigmoid inside",
    "cgan": "generator and discriminator",
    "vit": "vision transformers",
    "sat_relu": "3-SAT written as ReLUs",
}
TEXT = """# What is decided

Instances of the public competition of neural network verifiers (VNN-COMP 2021 to 2026) whose answer is
known, because at least one reliable tool decided them in a published run. This page is written by
`benchmarks/vnncomp.py`, which can be run again.

`pindown verify --budget {budget}`; no GPU. {clock} CPU seconds are the sum over all instances
of a family, those of loading the library and reading both files included.
*Violated* and *holding* count what was found of the instances of either kind. *Published* is the median,
over the instances that are decided here, of the best time that any tool published.

{table}
{missing}
For scale: of 132 other instances of 18 of these families alpha,beta-CROWN decided 129, nnenum 96, MN-BaB
78, VeriNet 70 and Marabou 69 in their published runs, on large machines, often with a GPU, within
minutes; not every tool entered every year.

What stays undecided is `unknown` and exit code 2, never a guess. [The guide](verification.md) says what
a verdict rests on.
"""
BY_CLOCK = "Seconds are by the clock."
BY_CPU = """The machine had other work: budgets and seconds are those of computing (CPU
seconds, one thread), of which a busy core takes more than a quiet one."""
Instance = dict[str, str]
Result = dict[str, Any]


def instances(families: Sequence[str]) -> list[Instance]:
    """Return the instances of some families, or of all, in the order of the list."""
    with (SHARED / "instances.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    known = list(dict.fromkeys(row["family"] for row in rows))
    unknown = sorted(set(families) - set(known))
    if unknown:
        sys.exit(f"no such family: {', '.join(unknown)}; there are {', '.join(known)}.")
    return [row for row in rows if not families or row["family"] in families]


# ---------------------------------------------------------------------- running


def decide(model: str, prop: str, budget: float, jobs: int | None, cpu: bool) -> Result:
    """Decide one instance in this process, by its own seconds of computing if asked for."""
    if cpu:
        time.monotonic = time.process_time
    import pindown as pn

    began = time.monotonic()
    answer = pn.verify(SHARED / model, SHARED / prop, budget=budget, n_jobs=jobs)
    return {
        "verdict": answer.word,
        "seconds": round(time.monotonic() - began, 3),
        "cpu_seconds": round(time.process_time(), 3),
        "method": answer.method,
        "parts": answer.n_parts,
        "open_sets": answer.open_sets,
        "sets": len(answer.prop.unsafe),
        "float32_violates": None if answer.example is None else answer.example.float32_violates,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def decided_apart(instance: Instance, budget: float, jobs: int | None, cpu: bool) -> Result:
    """Decide one instance in a process of its own; what goes wrong there is a result, too."""
    words = [sys.executable, __file__, "--one", instance["model"], instance["property"]]
    words += ["--budget", str(budget), *([] if jobs is None else ["--jobs", str(jobs)])]
    words += ["--cpu"] if cpu else []
    patience = BUSY if cpu else 1.0
    began = time.monotonic()
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=patience * (1.5 * budget + GRACE)
        )
        found = json.loads(done.stdout) if done.returncode == 0 else None
        reason = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
    except subprocess.TimeoutExpired:
        found, reason = None, "it did not end and was stopped"
    if found is None:
        found = {"verdict": "error", "seconds": round(time.monotonic() - began, 3), "method": reason}
    told = {name: instance[name] for name in ("family", "model", "property", "truth")}
    seconds = instance["best_published_seconds"]
    published = float(seconds) if seconds else None  # where only the file's name tells the answer
    ran = {"budget": budget, "cpu": cpu, "when": here()}
    return {**told, **ran, **found, "published_seconds": published}


def key(row: dict[str, Any]) -> tuple[str, str]:
    return row["model"], row["property"]


def kept(path: Path, budget: float, cpu: bool) -> dict[tuple[str, str], Result]:
    """Return what was run with this budget; of several runs of one instance the last."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:  # a line that was being written when the machine went down
            continue
    return {key(row): row for row in rows if (row["budget"], row.get("cpu", False)) == (budget, cpu)}


def run_all(
    chosen: list[Instance], path: Path, budget: float, jobs: int | None, again: bool, cpu: bool
) -> None:
    """Run what is not there yet, and write each result when it is there."""
    before = {} if again else kept(path, budget, cpu)
    todo = [instance for instance in chosen if key(instance) not in before]
    for i, instance in enumerate(todo):
        result = decided_apart(instance, budget, jobs, cpu)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        right = "WRONG" if wrong(result) else result["verdict"]
        name = f"{Path(instance['model']).name} {Path(instance['property']).name}"
        words = f"{i + 1}/{len(todo)} {instance['family']} {name}"
        print(f"{words}: {right}, {result['seconds']:.1f} s, {result['method']}", file=sys.stderr)


# ---------------------------------------------------------------------- tables


def wrong(row: Result) -> bool:
    return row["verdict"] in DECIDED and row["verdict"] != row["truth"]


def late(row: Result) -> bool:
    """Return whether a budget was not kept within a tenth and a second."""
    return bool(row["seconds"] > 1.1 * row["budget"] + 1.0)


def share(rows: list[Result], truth: str) -> str:
    mine = [row for row in rows if row["truth"] == truth]
    return f"{sum(row['verdict'] == truth for row in mine)} of {len(mine)}" if mine else "-"


def counted(done: int, n: int) -> str:
    """Return a number with its share in whole percent, a hundred only if nothing is left."""
    return f"{done} ({1.0 if done == n else min(done / n, 0.99):.0%})"


COLUMNS = (
    "family",
    "what it is",
    "instances",
    "decided",
    "violated",
    "holding",
    "wrong",
    "median s",
    "largest s",
    "CPU s",
    "published s",
    "run on",
)


def here() -> str:
    """Return what a result depends on beside the code."""
    return f"{machine()}, {datetime.date.today()}"


def summary(name: str, rows: list[Result]) -> tuple[str, ...]:
    """Return the row of a table: times are those of decided instances, as are the published ones."""
    done = [row for row in rows if row["verdict"] in DECIDED]
    seconds = [row["seconds"] for row in done]
    published = [row["published_seconds"] for row in done if row["published_seconds"] is not None]
    return (
        name,
        ABOUT.get(name, ""),
        str(len(rows)),
        counted(len(done), len(rows)),
        share(rows, "sat"),
        share(rows, "unsat"),
        str(sum(map(wrong, rows))),
        f"{statistics.median(seconds):.1f}" if done else "-",
        f"{max(seconds):.1f}" if done else "-",
        f"{sum(row.get('cpu_seconds', row['seconds']) for row in rows):.0f}",
        f"{statistics.median(published):.1f}" if published else "-",
        "; ".join(dict.fromkeys(row.get("when", here()) for row in rows)),
    )


def summaries(results: list[Result]) -> Iterator[tuple[str, ...]]:
    families = list(dict.fromkeys(row["family"] for row in results))
    for family in families:
        yield summary(family, [row for row in results if row["family"] == family])
    if len(families) > 1:
        yield summary("all", results)


def printed(results: list[Result]) -> str:
    """Return the table for a terminal, and below it what wants a look."""
    table = [COLUMNS, *summaries(results)]
    shown = [[cell for column, cell in enumerate(row) if column not in (1, 11)] for row in table]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in shown]
    for row in results:
        words = "WRONG" if wrong(row) else "late" if late(row) else ""
        words = words or ("error" if row["verdict"] == "error" else "")
        if words:
            lines.append(
                f"{words}: {row['model']} {row['property']}: {row['verdict']} ({row['truth']}), "
                f"{row['seconds']:.1f} s, {row['method']}"
            )
    return "\n".join(lines)


def page(results: list[Result], budget: float, cpu: bool, before: str = "") -> str:
    """Return the page of the documentation.

    Families without results keep their rows of the page before, if it tells of the same budget: their
    results may lie on another machine.
    """
    told = {"budget": f"{budget:g}", "clock": BY_CPU if cpu else BY_CLOCK}
    head = TEXT.partition("{table}")[0].format(**told)
    lines = before.splitlines() if before.startswith(head) else []
    rows = {row[0]: row for line in lines if (row := tuple(line.strip("| ").split(" | ")))[0] in ABOUT}
    rows |= {row[0]: row for row in summaries(results)}
    rows.pop("all", None)
    rows = {name: rows[name] for name in (*ABOUT, *rows) if name in rows}  # in the order of the list
    table = [COLUMNS, *rows.values(), *([_total(list(rows.values()))] if len(rows) > 1 else [])]
    lines = [f"| {' | '.join(row)} |" for row in table]
    lines.insert(1, f"|---|---|{'---:|' * (len(COLUMNS) - 3)}---|")
    left = [name for name in ABOUT if name not in rows]
    return TEXT.format(
        **told,
        table="\n".join(lines),
        missing=f"\nNot run with this budget yet: {', '.join(left)}.\n" if left else "",
    )


def _total(rows: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the last row of the page: sums, and the largest time."""
    cells = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    n, done, wrongs, cpu = (
        sum(int(cell.split()[0]) for cell in cells[name])
        for name in ("instances", "decided", "wrong", "CPU s")
    )
    shares = [
        " of ".join(
            str(sum(int(cell.split(" of ")[k]) for cell in cells[name] if cell != "-")) for k in (0, 1)
        )
        for name in ("violated", "holding")
    ]
    largest = max((cell for cell in cells["largest s"] if cell != "-"), key=float, default="-")
    return (
        "all",
        "",
        str(n),
        counted(done, n),
        *shares,
        str(wrongs),
        "-",
        largest,
        str(cpu),
        "-",
        "",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Verification problems with known answers.")
    parser.add_argument("families", nargs="*", help="all if none is named")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each")
    parser.add_argument("--jobs", type=int, default=None, help="threads; all cores if not given")
    parser.add_argument(
        "--cpu", action="store_true", help="count seconds of computing, not of the clock"
    )
    parser.add_argument("--first", type=int, default=None, help="only so many of each family")
    parser.add_argument("--again", action="store_true", help="run what was run before, too")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of results")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that is written")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        model, prop = given.families
        print(json.dumps(decide(model, prop, given.budget, given.jobs, given.cpu)))
        return
    chosen, counts = [], dict.fromkeys(ABOUT, 0)
    for instance in instances(given.families):
        family = instance["family"]
        counts[family] = counts.get(family, 0) + 1
        if given.first is None or counts[family] <= given.first:
            chosen.append(instance)
    try:
        if not given.table:
            run_all(chosen, given.results, given.budget, given.jobs, given.again, given.cpu)
    except KeyboardInterrupt:
        print("interrupted: what is finished is kept", file=sys.stderr)
    found = kept(given.results, given.budget, given.cpu)
    results = [found[key(instance)] for instance in chosen if key(instance) in found]
    if not results:
        sys.exit("no results yet.")
    print(printed(results))
    before = given.page.read_text("utf-8") if given.page.exists() else ""
    given.page.write_text(page(results, given.budget, given.cpu, before), encoding="utf-8")


if __name__ == "__main__":
    main()
