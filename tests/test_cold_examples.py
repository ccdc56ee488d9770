"""Every public name answers the example of its docstring at once, with nothing compiled before."""

import doctest
import json
import os
import subprocess
import sys

import pytest

MOST_SECONDS = 2.0
# A plain loop of Python takes so long on a machine that does nothing else.
YARDSTICK_SECONDS = 0.11

# One process loads what is not pindown's own to load; each example runs in a copy of it, where no module
# of pindown is loaded and no loop is compiled. The time is that of the thread that waits for the answer.
EVERY_EXAMPLE = """
import doctest, importlib, json, os, pathlib, sys, time
import numpy, scipy.optimize, scipy.sparse, scipy.stats, sklearn.model_selection, sklearn.neighbors
import sklearn.svm, torch, torch._dynamo, torch.func, torch.utils.flop_counter
import matplotlib.figure, pindown
from pindown.lazy import homes_of

torch.set_num_threads(1)


def rooms(package):
    yield package
    for found in sorted(pathlib.Path(package.__path__[0]).glob("*/__init__.pyi")):
        if not found.parent.name.startswith("_"):
            yield from rooms(importlib.import_module(f"{package.__name__}.{found.parent.name}"))


def answered(module, name):
    begin = time.thread_time()
    value = getattr(importlib.import_module(module), name)
    home = importlib.import_module(value.__module__) if hasattr(value, "__module__") else None
    globs = dict(vars(home)) if home else {}
    examples = doctest.DocTestFinder(recurse=False).find(value, name, module=False, globs=globs)
    runner = doctest.DocTestRunner(verbose=False, optionflags=int(sys.argv[1]))
    for example in examples:
        runner.run(example, out=sys.stderr.write)
    return {"examples": sum(len(e.examples) for e in examples), "failures": runner.failures,
            "seconds": time.thread_time() - begin}


begin = time.thread_time()
sum(i * i for i in range(2_000_000))
print(time.thread_time() - begin)
homes = (home for room in rooms(pindown) for home in homes_of(room.__name__).values())
names = {home for home in homes if home[0] != "pindown"}
for module, name in sorted(names):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(sys.argv[2])
        os.write(write, json.dumps(answered(module, name)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        text = told.read()
    os.waitpid(child, 0)
    print(json.dumps({"name": f"{module}.{name}", **(json.loads(text) if text else {"failures": 1})}))
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_examples_of_public_names_are_quick_when_nothing_is_compiled(tmp_path):
    flags = doctest.NORMALIZE_WHITESPACE
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "numba"), "OMP_NUM_THREADS": "1"}
    env |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_EXAMPLE, str(flags), str(tmp_path)],
        capture_output=True, text=True, check=True, env=env,
    )  # fmt: skip
    yardstick, *lines = done.stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) > 700 and sum(one.get("examples", 0) > 0 for one in found) > 500
    assert not [one["name"] for one in found if one["failures"]]
    most = MOST_SECONDS * max(1.0, float(yardstick) / YARDSTICK_SECONDS)
    slow = {one["name"]: one["seconds"] for one in found if one["seconds"] > most}
    assert not slow
