"""Tangent kernels in closed form against ``torch.func``, and the kernel of infinite width.

The closed form runs in float64, ``torch.func`` (``vmap`` of ``jacrev``, as in the PyTorch tutorial) in
float32, which is the faster of its two; modules with convolutions in blocks of 50 rows. The Jacobian is
kept all the same (10 GB for 800 rows and a wide layer, which gets 100). They are timed in float64, too,
as ours are. Both see the same network and rows, dense ones each in a process of its own.
Memory is the peak resident size of the process minus what it had before the kernel was asked for, unless
it says otherwise. CPU time of one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

CASES = (
    ("two layers, n = 1,000, d = 784, width 1,024", 1000, (784, 1024, 1)),
    ("two layers, n = 1,000, d = 32, width 1,024", 1000, (32, 1024, 1)),
    ("three layers, n = 300, d = 784, widths 512, 512", 300, (784, 512, 512, 1)),
    ("three layers, 10 outputs, n = 100, d = 784, widths 256, 256", 100, (784, 256, 256, 10)),
)

CHILD = """
import json, sys, time
import numpy as np
which, folder = sys.argv[1], sys.argv[2]
data = np.load(folder + "/problem.npz")
X = data["X"]
weights = [data[f"W{i}"] for i in range(sum(k.startswith("W") for k in data))]
if which == "closed":
    from pindown import ReluNetwork
    from pindown.bias import empirical_ntk
    net = ReluNetwork.from_layers([(W, np.zeros(len(W))) for W in weights])
    empirical_ntk(net, X[:2], biases=False)
    ask = lambda: empirical_ntk(net, X, biases=False)
else:
    import torch
    from torch import nn
    from torch.func import functional_call, jacrev, vmap
    torch.set_num_threads(1)
    parts = []
    for W in weights:
        linear = nn.Linear(W.shape[1], W.shape[0], bias=False)
        linear.weight.data = torch.as_tensor(W, dtype=torch.float32)
        parts += [linear, nn.ReLU()]
    module = nn.Sequential(*parts[:-1])
    parameters = {name: value.detach() for name, value in module.named_parameters()}
    rows = torch.as_tensor(X, dtype=torch.float32)
    def single(p, x):
        return functional_call(module, p, (x[None],))[0]
    def ask(rows=rows):
        jacobian = vmap(jacrev(single), (None, 0))(parameters, rows)
        kernel = 0
        for J in jacobian.values():
            flat = J.flatten(1)
            kernel = kernel + flat @ flat.T
        return (kernel / len(weights[-1])).numpy()
    ask(rows[:2])
# Not getrusage: a new process inherits the peak of its parent there.
peak = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
before = peak()
start = time.process_time()
K = ask()
seconds = time.process_time() - start
np.save(f"{folder}/{which}.npy", K)
print(json.dumps([seconds, peak() - before, peak()]))
"""

MODULES = {
    ("LeNet, 10 outputs", 800): """nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))""",
    ("two convolutions and a wide layer, 10 outputs", 100): """nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(2304, 128), nn.ReLU(), nn.Linear(128, 10))""",
    ("two convolutions, 1 output", 800): """nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(576, 1))""",
}

MODULE = """
import json, sys, time
import numpy as np
import torch
from torch import nn
from torch.func import functional_call, jacrev, vmap
from pindown.bias import empirical_ntk
torch.set_num_threads(1)
torch.manual_seed(0)
net = eval(sys.argv[1])
X = np.random.default_rng(0).standard_normal((int(sys.argv[2]), 1, 28, 28)).astype(np.float32)
def theirs(net, rows):
    parameters = {name: value.detach() for name, value in net.named_parameters()}
    def single(p, x):
        return functional_call(net, p, (x[None],))[0]
    blocks = [vmap(jacrev(single), (None, 0))(parameters, part) for part in rows.split(50)]
    kernel = 0
    for name in parameters:
        flat = torch.cat([J[name].flatten(1) for J in blocks])
        kernel = kernel + flat @ flat.T
    return kernel.numpy() / single(parameters, rows[0]).numel()
def timed(ask):
    start = time.process_time()
    kernel = ask()
    return time.process_time() - start, kernel
empirical_ntk(net, X[:2], method="closed")
ours, closed = timed(lambda: empirical_ntk(net, X, method="closed"))
rows = torch.as_tensor(X)
theirs(net, rows[:2])
single, _ = timed(lambda: theirs(net, rows))
double, other = timed(lambda: theirs(net.double(), rows.double()))
print(json.dumps([ours, single, double, float(np.abs(closed - other).max() / np.abs(other).max())]))
"""

LARGE = """
import json, time
import numpy as np
from pindown import ReluNetwork
from pindown.bias import empirical_ntk
rng = np.random.default_rng(0)
widths = (784, 512, 512, 1)
layers = [(rng.standard_normal((b, a)) / a**0.5, np.zeros(b)) for a, b in zip(widths, widths[1:])]
net, X = ReluNetwork.from_layers(layers), rng.standard_normal((4000, 784))
start = time.process_time()
empirical_ntk(net, X)
seconds = time.process_time() - start
print(json.dumps([seconds, int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024]))
"""

INFINITE = """
import json, time
import numpy as np
from pindown.bias import infinite_ntk
X = np.random.default_rng(0).standard_normal((2000, 100))
seconds = []
for _ in range(3):
    start = time.process_time()
    infinite_ntk(X, depth=5)
    seconds.append(time.process_time() - start)
print(json.dumps(min(seconds)))
"""


def child(code: str, *arguments: str) -> list[float]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def compare(name: str, n: int, widths: tuple[int, ...]) -> tuple[str, str]:
    rng = np.random.default_rng(0)
    problem = {
        f"W{i}": rng.standard_normal((m, d)) / np.sqrt(d) for i, (d, m) in enumerate(pairwise(widths))
    }
    problem = {key: W.astype(np.float32).astype(np.float64) for key, W in problem.items()}
    X = rng.standard_normal((n, widths[0])).astype(np.float32).astype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder, "problem.npz"), X=X, **problem)
        ours, ours_mb, ours_peak = child(CHILD, "closed", folder)
        theirs, theirs_mb, theirs_peak = child(CHILD, "torch", folder)
        closed, other = np.load(f"{folder}/closed.npy"), np.load(f"{folder}/torch.npy")
    gap = float(np.abs(closed - other).max() / np.abs(closed).max())
    return name, (
        f"{ours:.2f} s, {ours_mb:.0f} MB (torch.func {theirs:.1f} s, {theirs_mb:.0f} MB): "
        f"{theirs / ours:.0f} times faster, {theirs_mb / max(ours_mb, 1):.0f} times less memory "
        f"({theirs_peak / ours_peak:.0f} times by whole processes); "
        f"largest difference {gap:.0e} of the largest entry"
    )


def run() -> list[tuple[str, str]]:
    rows = [compare(*case) for case in CASES]
    for (name, n), code in MODULES.items():
        ours, single, double, gap = child(MODULE, code, str(n))
        rows.append((
            f"{name}, n = {n}",
            f"{ours:.2f} s; torch.func in float32 {single:.1f} s ({single / ours:.1f} times), in "
            f"float64 {double:.1f} s ({double / ours:.1f} times); largest difference {gap:.0e} of the "
            "largest entry",
        ))  # fmt: skip
    seconds, peak = child(LARGE)
    rows.append(("three layers, n = 4,000, d = 784, widths 512, 512",
                 f"{seconds:.1f} s, whole process {peak:.0f} MB"))  # fmt: skip
    seconds = child(INFINITE)
    rows.append(("infinite width, n = 2,000, depth 5", f"{seconds:.2f} s"))
    return rows


if __name__ == "__main__":
    for what, result in run():
        print(f"{what}: {result}", flush=True)
