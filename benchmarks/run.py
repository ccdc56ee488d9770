"""Run every benchmark and write RESULTS.md: what was measured, on which machine, when."""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import sys
from pathlib import Path

BENCHMARKS = (
    "evaluation",
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
)
HERE = Path(__file__).parent


def machine() -> str:
    names = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    processor = names[0] if names else platform.processor()
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    sys.path.insert(0, str(HERE))
    lines = [
        "# Benchmark results",
        "",
        f"{datetime.date.today()}, {machine()}. Times are the best of several runs; compare ratios.",
    ]
    for name in BENCHMARKS:
        module = importlib.import_module(name)
        print(f"running {name}", file=sys.stderr)
        about = (module.__doc__ or "").strip()
        lines += ["", f"## {name}", "", about, "", "| what | result |", "|---|---|"]
        lines += [f"| {what} | {result} |" for what, result in module.run()]
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")
    print((HERE / "RESULTS.md").read_text())


if __name__ == "__main__":
    main()
