"""Run benchmarks and write RESULTS.md: what was measured, on which machine, when, of which commit.

python benchmarks/run.py                      all of them
python benchmarks/run.py equivalence certify  these; the others keep the results they have
python benchmarks/run.py --help               this, and which there are

Each runs in a process of its own with one thread of linear algebra. Nothing else writes RESULTS.md: a
row that could not be measured, because data or a peer are not here, is kept as it was and says so, and a
section that fails is kept whole.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# What each needs beside the library: a peer, or files. The data of the competition are "vnncomp".
BENCHMARKS: dict[str, tuple[str, ...]] = {
    "evaluation": ("models",),
    "zoo": ("models",),
    "geometry": ("models", "relucent"),
    "segments": ("models", "data/mnist"),
    "equivalence": ("models", "data/mnist"),
    "exact_training": (),
    "segmented": ("pwlf", "ruptures"),
    "kernels": (),
    "optimisers": (),
    "neural_tangent": (),
    "sparse_coding": (),
    "certify": ("data/mnist",),
    "robustness": ("models", "data/mnist", "maraboupy"),
    "certificates": ("models", "vnncomp"),
    "attacks": ("models", "data/mnist", "foolbox"),
    "one_class_baselines": ("data/adbench", "pyod"),
    "error_rates": (),
    "symmetry_learning": (),
    "multi_exit": ("data/mnist",),
    "scaling": ("models", "distributed"),
    "scaling_cost": (),
}
PEERS = ("relucent", "pwlf", "ruptures", "maraboupy", "foolbox", "pyod", "distributed")
HERE = Path(__file__).parent
SHARED = Path(os.environ.get("PINDOWN_SHARED", HERE.parents[1] / "shared"))
RESULTS = HERE / "RESULTS.md"
PAGES = dict.fromkeys(("scaling_cost", "scaling"), HERE.parent / "docs/scaling.md")  # show sections
HEAD = (
    "# Benchmark results\n\nWritten by `benchmarks/run.py`. "
    "Times are the best of several runs; compare ratios.\n"
)
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WHEN = re.compile(r"(?:Measured |\()(\d{4}-\d\d-\d\d)")
ROW = re.compile(r"^\| (.*?) \| (.*) \|$", re.MULTILINE)
Rows = Mapping[str, str]


def absent(name: str) -> list[str]:
    """Return what a benchmark needs and is not here."""
    needs = BENCHMARKS[name]
    modules = [need for need in needs if need in PEERS and importlib.util.find_spec(need) is None]
    files = [need for need in needs if need not in PEERS and not (SHARED / need).is_dir()]
    return [f"{need} is not installed" for need in modules] + [f"{need} is not there" for need in files]


def machine() -> str:
    names = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    processor = names[0] if names else platform.processor()
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, one thread"


def commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    sources = "../src", "*.py"
    changed = " with changes" if git("status", "--porcelain", "--", *sources) else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def measured(name: str) -> tuple[str, dict[str, str]]:
    """Run one benchmark in a new process; return what it is about and its rows."""
    environment = {"PINDOWN_DATA": str(SHARED / "data"), **os.environ, **ONE_THREAD}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        subprocess.run([sys.executable, __file__, "--one", name, str(out)], env=environment, check=True)
        about, rows = json.loads(out.read_text())
    return about, dict(rows)


def one(name: str, out: str) -> None:
    sys.path.insert(0, str(HERE))
    module = importlib.import_module(name)
    rows = [(what, str(result)) for what, result in module.run()]
    Path(out).write_text(json.dumps([(module.__doc__ or "").strip(), rows]))


def section(name: str, about: str, rows: Rows, before: str, missing: list[str]) -> str:
    """Return a section: its new rows, and those of before that could not be measured."""
    old = dict(ROW.findall(before))
    date = WHEN.search(before)
    since = f" [kept from {date.group(1) if date else 'before'}: {', '.join(missing)}]"
    lines = {}
    for what, result in rows.items():
        was = old.get(what, result).partition(" [kept from ")[0]
        kept = missing and "not installed" in result and "not installed" not in was
        lines[what] = _marked(old[what], since) if kept else result
    if missing:
        lines |= {what: _marked(old[what], since) for what in old.keys() - rows.keys() - {"what"}}
    when = f"Measured {datetime.date.today()}, {machine()}, commit {commit()}."
    head = [f"## {name}", "", about, "", when, "", "| what | result |", "|---|---|"]
    order = [*(what for what in old if what in lines and what not in rows), *rows]
    return "\n".join(head + [f"| {what} | {lines[what]} |" for what in order]) + "\n"


def _marked(result: str, since: str) -> str:
    return result if "[kept from " in result else result + since


def publish(sections: Mapping[str, str]) -> None:
    """Write the tables of sections that a page shows into the page, between its marks."""
    for name, page in PAGES.items():
        mark = f"<!-- {name}.py -->\n"
        before, rest = page.read_text("utf-8").split(mark)
        after = rest.split("<!-- end -->", 1)[1]
        if name in sections:
            page.write_text(f"{before}{mark}\n{table(sections[name])}\n<!-- end -->{after}", "utf-8")


def table(text: str) -> str:
    """Return the table of a section as pages show it."""
    rows = [f"| {what} | {result} |\n" for what, result in ROW.findall(text) if what != "what"]
    return "".join(["| what | measured |\n|---|---|\n", *rows])


def kept() -> dict[str, str]:
    """Return the sections that RESULTS.md has."""
    parts = RESULTS.read_text().split("\n## ")[1:] if RESULTS.exists() else []
    return {part.split("\n", 1)[0]: f"## {part.rstrip()}\n" for part in parts}


def main(names: list[str]) -> int:
    if {"-h", "--help"} & set(names):
        print(f"{__doc__}\nThere are {', '.join(BENCHMARKS)}.")
        return 0
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}.")
    failed = []
    for name in names or BENCHMARKS:  # what is measured is written at once: nothing is lost later
        print(f"running {name}", file=sys.stderr)
        try:
            about, rows = measured(name)
        except subprocess.CalledProcessError:
            failed.append(name)
            continue
        sections = kept()
        sections[name] = section(name, about, rows, sections.get(name, ""), absent(name))
        texts = [sections[known] for known in BENCHMARKS if known in sections]
        RESULTS.write_text("\n".join([HEAD, *texts]))
        publish(sections)
    if failed:
        print(f"failed, and kept as they were: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
