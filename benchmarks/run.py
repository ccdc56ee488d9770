"""Run benchmarks and write RESULTS.md: what was measured, on which machine, when.

python benchmarks/run.py                      all of them
python benchmarks/run.py equivalence certify  these; the others keep the results they have
"""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import sys
from pathlib import Path

BENCHMARKS = (
    "evaluation",
    "zoo",
    "geometry",
    "segments",
    "equivalence",
    "exact_training",
    "segmented",
    "kernels",
    "optimisers",
    "neural_tangent",
    "certify",
    "robustness",
    "attacks",
    "one_class_baselines",
    "symmetry_learning",
    "multi_exit",
    "scaling",
)
HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
HEAD = "# Benchmark results\n\nTimes are the best of several runs; compare ratios.\n"


def machine() -> str:
    names = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    processor = names[0] if names else platform.processor()
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def measured(name: str) -> str:
    """Run one benchmark and return its section."""
    module = importlib.import_module(name)
    print(f"running {name}", file=sys.stderr)
    about = (module.__doc__ or "").strip()
    when = f"Measured {datetime.date.today()}, {machine()}."
    lines = [f"## {name}", "", about, "", when, "", "| what | result |", "|---|---|"]
    return "\n".join(lines + [f"| {what} | {result} |" for what, result in module.run()]) + "\n"


def kept() -> dict[str, str]:
    """Return the sections that RESULTS.md has."""
    parts = RESULTS.read_text().split("\n## ")[1:] if RESULTS.exists() else []
    return {part.split("\n", 1)[0]: f"## {part.rstrip()}\n" for part in parts}


def main() -> None:
    sys.path.insert(0, str(HERE))
    names = sys.argv[1:] or BENCHMARKS
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}.")
    sections = kept()
    for name in names:  # what is measured is written at once: nothing is lost if a later one fails
        sections[name] = measured(name)
        texts = [sections[known] for known in BENCHMARKS if known in sections]
        RESULTS.write_text("\n".join([HEAD, *texts]))
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
