"""Reads mutated model files, thousands in one process, and reports what went wrong as JSON.

Run by test_fuzz.py as ``python -m tests.io.fuzz_worker KIND SEED COUNT FOLDER``, in a process of its
own: memory is limited here, and a crash takes nobody along.
"""

import gzip
import json
import resource
import signal
import sys
import traceback
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np

from pindown.deadline import Stopwatch
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io import load
from pindown.io._onnx.writer import onnx_bytes
from pindown.io._safetensors import safetensors_bytes
from tests.io.fuzz_corpus import foreign_safetensors, networks, onnx_models
from tests.io.fuzz_mutations import mutated_bytes, mutated_model, pick

MEMORY_BYTES = 4 * 2**30
SECONDS_PER_FILE = 20  # of processor time: other work on the machine does not count


class TooSlow(BaseException):
    """Raised by the alarm; not an Exception, so no reader can swallow it."""


ENDINGS = {
    "safetensors": ".safetensors",
    "onnx-gzip": ".onnx.gz",
    "onnx-bytes": ".onnx",
    "onnx-structure": ".onnx",
}


def cases(kind, rng):
    """Yield the content of mutated files, endlessly."""
    models = list(onnx_models())
    plain = [model.SerializeToString() for model in models] + [onnx_bytes(net) for net in networks()]
    tensors = [safetensors_bytes(net) for net in networks()] + [foreign_safetensors()]
    while True:
        if kind == "onnx-bytes":
            yield mutated_bytes(pick(rng, plain), rng)
        elif kind == "onnx-structure":
            yield mutated_model(pick(rng, models), rng)
        elif kind == "safetensors":
            yield mutated_bytes(pick(rng, tensors), rng)
        elif rng.integers(2):
            yield mutated_bytes(gzip.compress(pick(rng, plain)), rng)
        else:
            yield gzip.compress(mutated_bytes(pick(rng, plain), rng))


def outcome(path):
    """Return a word for what happened, and the traceback if that may not happen."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_FILE)
    try:
        load(path, activation="relu")  # which a state dict does not say
    except (ModelFileError, UnsupportedModelError) as error:
        if "more memory" in str(error):
            return "out of memory", str(error)
        return ("refused" if str(error).isprintable() else "unclear message"), repr(str(error))
    except TooSlow:
        return "too slow", traceback.format_exc()
    except BaseException as error:  # a panic in Rust code is no Exception
        return type(error).__name__, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "read", None


def peak_bytes():
    """Return the most memory this program held: ru_maxrss would count its parent before the exec too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def main(kind, seed, count, folder):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    def alarm(*_):
        raise TooSlow

    signal.signal(signal.SIGPROF, alarm)
    rng = np.random.default_rng(seed)
    counts, failures, slowest = Counter(), [], 0.0
    path = Path(folder) / f"mutated{ENDINGS[kind]}"  # survives a crash of this process
    with path.open("wb", buffering=0) as file:  # one file, rewritten: to make one anew takes 5 ms
        for i, data in enumerate(islice(cases(kind, rng), count)):
            file.seek(0)
            file.write(data)
            file.truncate()
            watch = Stopwatch()
            word, trace = outcome(path)
            slowest = max(slowest, watch.seconds)
            counts[word] += 1
            if word not in ("read", "refused") and len(failures) < 5:
                failures.append({"case": i, "what": word, "trace": trace, "data": data.hex()[:20_000]})
    peak = peak_bytes()
    print(json.dumps({"counts": counts, "failures": failures, "slowest": slowest, "peak_bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
