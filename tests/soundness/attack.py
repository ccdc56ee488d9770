"""The random attack: ``python -m tests.soundness.attack --seed 1 --count 5000 --jobs 2``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

_BLOCK = 24  # cases in one task: every family once


def attack(seed: int, indices: range, only: list[str] | None = None):
    """Attack some cases; return what became of each family and check."""
    from tests.soundness.checks import run_checks
    from tests.soundness.families import make_case
    from tests.soundness.session import Tally

    found = defaultdict(Tally)
    for index in indices:
        case = make_case(seed, index)
        for name, tally in run_checks(case, only).tallies.items():
            found[case.family, name].add(tally)
    return dict(found)


def warm_up() -> None:
    """Load and compile what the first questions would wait for."""
    import pindown as pn
    from pindown.geometry import output_range

    for d in (1, 2, 3):
        net = pn.ReluNetwork.from_layers(
            [([[1.0] * d, [2.0] + [-1.0] * (d - 1)], [0, 0.5]), ([[1.0, -1.0]], [0])]
        )
        output_range(net, (-1, 1), certified=True)
        pn.diff(net, net, box=(-1, 1))


def _blocks(seed: int, start: int, count: int, jobs: int, only) -> Iterator[tuple[int, dict]]:
    parts = [range(i, min(i + _BLOCK, start + count)) for i in range(start, start + count, _BLOCK)]
    if jobs == 1:
        warm_up()
        for part in parts:
            yield len(part), attack(seed, part, only)
        return
    pool = ProcessPoolExecutor(jobs, initializer=warm_up)
    try:
        for part, future in [(part, pool.submit(attack, seed, part, only)) for part in parts]:
            yield len(part), future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def table(found: dict) -> str:
    """Return counts by family and by check."""
    from tests.soundness.session import Tally

    columns = ("questions", "claims", "false", "errors", "refused", "CPU s", "slowest s")
    lines = []
    for title, at in (("family", 0), ("check", 1)):
        sums = defaultdict(Tally)
        for key, tally in found.items():
            sums[key[at]].add(tally)
            sums["all"].add(tally)
        sums["all"] = sums.pop("all", Tally())  # last
        lines.append(f"{title:<20}" + "".join(f"{name:>10}" for name in columns))
        for name, t in sums.items():
            counts = t.asked, t.claims, len(t.failures), len(t.errors), t.refused
            seconds = f"{t.seconds:>10.1f}{t.slowest:>10.2f}"
            lines.append(f"{name:<20}" + "".join(f"{count:>10,}" for count in counts) + seconds)
        lines.append("")
    return "\n".join([*lines, *_crossed(found)])


def _crossed(found: dict) -> list[str]:
    """Return the claims of every family and check, those that were false or failed behind an "!"."""
    families, checks = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    lines = [f"  {number:>2} {name}" for number, name in enumerate(checks, 1)]
    lines += ["", f"{'claims':<20}" + "".join(f"{number:>8}" for number in range(1, len(checks) + 1))]
    for family in families:
        cells = [found.get((family, name)) for name in checks]
        wrong = [0 if t is None else len(t.failures) + len(t.errors) for t in cells]
        shown = [
            f"{0 if t is None else t.claims}{f'!{n}' if n else ''}"
            for t, n in zip(cells, wrong, strict=True)
        ]
        lines.append(f"{family:<20}" + "".join(f"{text:>8}" for text in shown))
    return [*lines, ""]


def main(arguments: list[str] | None = None) -> int:
    """Attack, print what was found, and return 1 if anything was false."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--count", type=int, default=5000)
    reader.add_argument("--start", type=int, default=0, help="the first case, to go on with a run")
    reader.add_argument("--jobs", type=int, default=2)
    reader.add_argument("--only", action="append", help="a check, such as 'diff'; may be repeated")
    given = reader.parse_args(arguments)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from tests.soundness.session import Tally

    began, done, found = time.monotonic(), 0, defaultdict(Tally)
    try:
        for n, part in _blocks(given.seed, given.start, given.count, given.jobs, given.only):
            for key, tally in part.items():
                found[key].add(tally)
                for text in (*tally.failures, *tally.errors):
                    print(text, end="\n\n", flush=True)
            done += n
            seconds = time.monotonic() - began
            print(f"{done} of {given.count}, {seconds:.0f} s", file=sys.stderr, flush=True)
    except KeyboardInterrupt:  # what was done stays
        print(f"stopped; go on with --start {given.start + done}", file=sys.stderr)
    print(table(found))
    for text in sorted(set().union(*(t.refusals for t in found.values()))):
        print("refused:", text)
    return int(any(t.failures or t.errors for t in found.values()))


if __name__ == "__main__":
    sys.exit(main())
