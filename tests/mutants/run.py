"""Put every fault in, one at a time, and see whether its tests notice.

``make mutants`` runs what is not yet known; ``SAMPLE=20`` a random sample that changes with the commit,
``ONLY=words`` the faults whose description holds the words. What was noticed is remembered in
``.mutants.json`` until the module, the fault or one of its tests changes, so that a run can be stopped,
resumed, and done in parts.

The source tree is never touched: a forked process imports the changed module instead of the one on disk.
So a fault must be seen by tests that run in their own process, not by a command they start.
"""

from __future__ import annotations

import argparse
import gc
import importlib.abc
import importlib.machinery
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tests.mutants.faults import ROOT, Fault, FaultError, all_faults

STATE = ROOT / ".mutants.json"
NOTICED, SURVIVED, BROKEN, HUNG = "noticed", "SURVIVED", "BROKEN", "HUNG"
MAX_SECONDS = 240
CHUNK = 4000  # characters of a failed run's output that are shown


class Planted(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds one module before anyone else does, and loads it with the fault in it."""

    def __init__(self, fault: Fault):
        name, path = fault.module
        super().__init__(name, str(path))
        self.fault = fault

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname):
        return compile(self.fault.source, self.path, "exec")


class Watch:
    """Pytest plugin: whether a test failed, and for what a test should fail."""

    def __init__(self):
        self.failed, self.typing_errors = [], []

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is None or call.excinfo.errisinstance(_skipped()):
            return
        self.failed.append(item.name)
        if call.excinfo.errisinstance((NameError, SyntaxError)):
            self.typing_errors.append(item.name)


def _skipped():
    import pytest

    return pytest.skip.Exception


def tested(tests: tuple[str, ...], fault: Fault | None) -> tuple[str, str]:
    """Run tests in this process, with or without a fault; return the outcome and what pytest printed."""
    import pytest

    if fault is not None:
        sys.meta_path.insert(0, Planted(fault))
    watch, said = Watch(), io.StringIO()
    quiet = ["-x", "-q", "--no-header", "-o", "addopts=", "-p", "no:cacheprovider", "-W", "ignore"]
    with redirect_stdout(said), redirect_stderr(said):
        code = pytest.main([*quiet, *tests], plugins=[watch])
    if code == pytest.ExitCode.OK:
        return SURVIVED, said.getvalue()
    if code != pytest.ExitCode.TESTS_FAILED or watch.typing_errors or not watch.failed:
        return BROKEN, said.getvalue()
    return NOTICED, said.getvalue()


def forked(fault: Fault | None, tests: tuple[str, ...]):
    """Start a process that runs the tests; return its id and the folder it answers in."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid, Path(folder)
    code = 1
    try:
        os.setsid()
        os.chdir(ROOT)
        if fault is not None and fault.compiled:
            os.environ["NUMBA_CACHE_DIR"] = folder
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        answer = tested(tests, fault)
        (Path(folder) / "answer.json").write_text(json.dumps(answer))
        code = 0
    finally:
        os._exit(code)


def warm_up():
    """Import what most tests import, so that every fork has it."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    import hypothesis  # noqa: F401
    import numba  # noqa: F401
    import onnx  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401
    import sklearn.linear_model
    import sklearn.utils.estimator_checks  # noqa: F401
    import torch

    torch.set_num_threads(1)
    if any(name.split(".")[0] == "pindown" for name in sys.modules):
        raise RuntimeError("pindown is imported already: faults could not be put in")
    gc.collect()
    gc.freeze()  # pytest collects garbage at its end: a second of every fork, spent on these modules


class Pool:
    """Runs jobs in so many forked processes, and hands over each answer as it comes."""

    def __init__(self, jobs: int):
        self.jobs, self.running = jobs, {}

    def answers(self, todo):
        """Yield (key, outcome, output, seconds) of (key, fault, tests) as they end."""
        todo = list(todo)[::-1]
        while todo or self.running:
            while todo and len(self.running) < self.jobs:
                key, fault, tests = todo.pop()
                pid, folder = forked(fault, tests)
                self.running[pid] = key, folder, time.monotonic()
            yield from self._ended()
            time.sleep(0.05)

    def _ended(self):
        for pid, (key, folder, began) in list(self.running.items()):
            seconds = time.monotonic() - began
            ended, _ = os.waitpid(pid, os.WNOHANG)
            if not ended and seconds < MAX_SECONDS:
                continue
            if not ended:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            answer = folder / "answer.json"
            outcome, said = (
                json.loads(answer.read_text()) if answer.exists() else (BROKEN, "the process died")
            )
            if not ended:
                outcome, said = HUNG, f"no answer after {MAX_SECONDS} s"
            shutil.rmtree(folder, ignore_errors=True)
            del self.running[pid]
            yield key, outcome, said, seconds

    def stop(self):
        """End what still runs."""
        for pid, (_, folder, _) in self.running.items():
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            shutil.rmtree(folder, ignore_errors=True)


def recalled() -> dict[str, str]:
    """What an earlier run found out: stamps of faults to outcomes."""
    try:
        return json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}


def remember(stamp: str, outcome: str) -> None:
    """Keep it for the next run, beside what other runs found out meanwhile."""
    whole = STATE.with_suffix(f".{os.getpid()}.tmp")
    whole.write_text(json.dumps(recalled() | {stamp: outcome}, indent=0))
    whole.replace(STATE)


def commit() -> str:
    """The commit that is checked out, or nothing outside of a repository."""
    run = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return run.stdout.strip()


def chosen(arguments) -> list[Fault]:
    """The faults that the command line asks for."""
    faults = [
        fault for fault in all_faults() if arguments.only.lower() in f"{fault.listed_in} {fault}".lower()
    ]
    if arguments.sample and arguments.sample < len(faults):
        faults = random.Random(arguments.seed or commit()).sample(faults, arguments.sample)
    return faults


def main() -> int:
    """Run what was asked for; 0 if every fault was noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="faults whose list, function or snippet holds these words"
    )
    parser.add_argument("--sample", type=int, default=0, help="so many, chosen at random")
    parser.add_argument("--seed", default="", help="of the sample; the commit unless given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget what earlier runs found out")
    parser.add_argument("--show", action="store_true", help="show what pytest printed for each survivor")
    arguments = parser.parse_args()
    try:
        faults = chosen(arguments)
        stamps = {fault: fault.digest for fault in faults}
    except FaultError as error:
        print(error)
        return 1
    state = {} if arguments.again else recalled()
    known = {fault: NOTICED for fault, stamp in stamps.items() if state.get(stamp) == NOTICED}
    todo = [fault for fault in faults if fault not in known]
    print(f"{len(faults)} faults, {len(known)} of them known to be noticed")
    # A core dump or a runaway allocation of one fault must not take the machine with it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warm_up()
    pool = Pool(arguments.jobs)
    try:
        failing = baseline(pool, todo)
        jobs = [(fault, fault, fault.tests) for fault in todo if fault not in failing]
        known |= dict.fromkeys(failing, BROKEN)
        for done, (fault, outcome, said, seconds) in enumerate(pool.answers(jobs), 1):
            known[fault] = outcome
            remember(stamps[fault], outcome)
            print(
                f"[{done}/{len(jobs)}] {outcome:8} {seconds:5.1f} s  {fault.listed_in}: {fault}",
                flush=True,
            )
            if outcome != NOTICED and (arguments.show or outcome == BROKEN):
                print(said[-CHUNK:])
    except KeyboardInterrupt:
        pool.stop()
        print("stopped; the next run goes on from here")
        return 130
    return table(faults, known)


def baseline(pool: Pool, todo: list[Fault]) -> set[Fault]:
    """Run the tests without any fault; return the faults whose tests fail anyway."""
    tests = sorted({test for fault in todo for test in fault.tests})
    files = {test.split("::")[0] for test in tests}
    groups = [
        (file, None, tuple(t for t in tests if t.split("::")[0] == file)) for file in sorted(files)
    ]
    suspect = {file for file, outcome, *_ in pool.answers(groups) if outcome != SURVIVED}
    single = pool.answers((test, None, (test,)) for test in tests if test.split("::")[0] in suspect)
    failing = set()
    for test, outcome, said, _ in single:
        if outcome != SURVIVED:
            failing.add(test)
            print(f"{test} fails without a fault:", said[-CHUNK:], sep="\n")
    return {fault for fault in todo if failing & set(fault.tests)}


def table(faults: list[Fault], known: dict[Fault, str]) -> int:
    """Print the counts of every list and the survivors; 1 if there is one."""
    print(f"\n{'list':24}{'faults':>8}{'noticed':>9}")
    for name in sorted({fault.listed_in for fault in faults}):
        of_list = [fault for fault in faults if fault.listed_in == name]
        noticed = sum(known.get(fault) == NOTICED for fault in of_list)
        print(f"{name:24}{len(of_list):8}{noticed:9}")
    left = [fault for fault in faults if known.get(fault) != NOTICED]
    print(f"{'all':24}{len(faults):8}{len(faults) - len(left):9}")
    for fault in left:
        print(
            f"{known.get(fault, 'not run')}: {fault.listed_in}: {fault}  ({', '.join(fault.noticed_by)})"
        )
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
