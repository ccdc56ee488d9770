"""Comparing, shrinking and pairing networks: CPU seconds of one thread, whole calls, files read before.

Public tools do other work: weight matchers (git-re-basin, rebasin) look for a permutation without scales
and without an answer. None returns a proved interval, so there is no ratio to report; times and
intervals are as they came.

Budgets count CPU seconds here, too, so that what else runs on the machine does not matter.

Around rows: the first test images, the pair's copy made here. *Ratio* is the proved upper end of the gap
in the ball of a row over the largest gap found there, its median with both quartiles. Pruned copies lost
the smallest weights of each layer; the fine-tuned one saw the training images once (SGD, rate 0.001).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

time.monotonic = time.process_time  # before pindown asks it: its budgets

import pindown as pn  # noqa: E402
from pindown.datasets import load_mnist  # noqa: E402
from pindown.equivalence import apply, random_symmetry  # noqa: E402

MODELS = Path("../shared/models")
GAP_ROWS, GAP_RADIUS = 30, 0.02
LABEL_ROWS, LABEL_RADIUS = 40, 1 / 255


def timed_diff(a: pn.ReluNetwork, b: pn.ReluNetwork, **options: object) -> tuple[float, pn.Diff]:
    start = time.process_time()
    answer = pn.diff(a, b, **options)  # type: ignore[arg-type]
    return time.process_time() - start, answer


def row(name: str, seconds: float, answer: pn.Diff) -> tuple[str, str]:
    return (
        name,
        f"{answer.verdict} at {answer.tol:g}, gap in [{answer.gap_lower:.2g}, {answer.gap_upper:.3g}], "
        f"{seconds:.2f} s ({answer.proof})",
    )


def pair_rows() -> list[tuple[str, str]]:
    rows = []
    pairs = [
        ("mnist_256x4.onnx.gz", "mnist_256x4_split_a.onnx.gz", (0.0, 1.0)),
        ("mnist_256x4.onnx.gz", "mnist_256x4_split_b.onnx.gz", (0.0, 1.0)),
        ("cifar_conv_base.onnx.gz", "cifar_conv_base_split.onnx.gz", (0.0, 1.0)),
    ]
    for first, second, (low, high) in pairs:
        a, b = pn.load(MODELS / first), pn.load(MODELS / second)
        for box in (pn.Box.cube(a.in_features, low, high), None):
            seconds, answer = timed_diff(a, b, box=box, tol=1e-4, budget=20)
            where = "box" if box is not None else "all inputs"
            rows.append(row(f"diff {second.split('.')[0]}, {where}", seconds, answer))
    for k, pruned in ((1, 5), (2, 30)):
        a, b = (pn.load(MODELS / f"acasxu_1_{k}{end}.onnx") for end in ("", f"_pruned{pruned}"))
        seconds, answer = timed_diff(a, b, box=pn.Box.cube(5, -0.5, 0.5), tol=1e-4, budget=20)
        rows.append(row(f"diff acasxu_1_{k}_pruned{pruned}, box", seconds, answer))
    net = pn.load(MODELS / "mnist_256x4.onnx.gz").relu_network()
    seconds, answer = timed_diff(net, copies(net)["float16"], box=pn.Box.cube(784, 0, 1), budget=20)
    name, text = row("diff mnist_256x4 and its float16 copy, box", seconds, answer)
    times = answer.gap_upper / answer.gap_lower
    rows.append((name, f"{text}; upper end {times:,.0f} times the lower one"))
    return rows


def copies(net: pn.ReluNetwork) -> dict[str, pn.ReluNetwork]:
    """Return copies of a network with other numbers: stored shorter, pruned, noisy."""
    rng = np.random.default_rng(0)

    def made(change: object) -> pn.ReluNetwork:
        return pn.ReluNetwork.from_layers([change(W, b) for W, b in net.layers])  # type: ignore[operator]

    def pruned(share: float) -> pn.ReluNetwork:
        return made(lambda W, b: (np.where(np.abs(W) > np.quantile(np.abs(W), share), W, 0.0), b))

    def whole_numbers(W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = np.abs(W).max() / 127
        return step * np.rint(W / step), b

    return {
        "float16": made(lambda W, b: (W.astype(np.float16), b.astype(np.float16))),
        "int8 weights": made(whole_numbers),
        "1 % pruned": pruned(0.01),
        "5 % pruned": pruned(0.05),
        "1 % noise": made(lambda W, b: (W * (1 + 0.01 * rng.normal(size=W.shape)), b)),
    }


def fine_tuned(net: pn.ReluNetwork, X: np.ndarray, y: np.ndarray) -> pn.ReluNetwork:
    """Return the network after one epoch."""
    import torch

    module = net.to_torch().float()
    steps = torch.optim.SGD(module.parameters(), lr=1e-3)
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
    for batch in order.split(64):
        steps.zero_grad()
        made = module(torch.tensor(X[batch.numpy()], dtype=torch.float32))
        torch.nn.functional.cross_entropy(made, torch.tensor(y[batch.numpy()]).long()).backward()
        steps.step()
    return pn.ReluNetwork.from_torch(module)


def integers_between_layers(net: pn.ReluNetwork, X: np.ndarray, folder: Path) -> Path:
    """Return onnxruntime's copy that rounds tensors to eight bits between its operations."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Rows(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = iter(X.astype(np.float32))

        def get_next(self) -> dict[str, np.ndarray] | None:
            x = next(self.left, None)
            return None if x is None else {"input": x.reshape(1, *net.input_shape)}

    net.save(folder / "plain.onnx")
    quantize_static(folder / "plain.onnx", folder / "qdq.onnx", Rows(), quant_format=QuantFormat.QDQ)
    return folder / "qdq.onnx"


def around_rows() -> list[tuple[str, str]]:
    digits = load_mnist()
    X, trained = (part.reshape(len(part), -1) / 255 for part in (digits.test, digits.train))
    labels = digits.train_labels
    net = pn.load(MODELS / "mnist_256x4.onnx.gz").relu_network()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        others = {
            **copies(net),
            "fine-tuned": fine_tuned(net, trained, labels),
            "QDQ int8": integers_between_layers(net, trained[:200], Path(folder)),
        }
        for name, other in others.items():
            how = {"box": pn.Box.cube(784, 0, 1), "tol": 1e9, "rtol": 0.0, "budget": 600.0}
            seconds, answer = timed_diff(net, other, data=X[:GAP_ROWS], radius=GAP_RADIUS, **how)
            ratio = answer.rows.gap_upper / answer.rows.gap_lower
            low, middle, high = np.quantile(ratio, [0.25, 0.5, 0.75])
            words = f"ratio {middle:.2f} ({low:.2f} to {high:.2f}), {seconds / GAP_ROWS:.2f} s a row"
            rows.append((f"mnist_256x4 and {name}, {GAP_ROWS} images +-{GAP_RADIUS}: gap", words))
            how |= {"data": X[:LABEL_ROWS], "radius": LABEL_RADIUS, "labels": True}
            seconds, answer = timed_diff(net, other, **how)
            same, apart = answer.rows.same_label, int(answer.rows.flipped.sum())
            words = ", ".join(f"{same.count(word)} {word}" for word in ("proved", "refuted", "open"))
            words += f" ({apart} rows flip), {seconds / LABEL_ROWS:.2f} s a row"
            rows.append((f"mnist_256x4 and {name}, {LABEL_ROWS} images +-1/255: labels", words))
    return rows


def controllers() -> list[tuple[str, str]]:
    """An aircraft controller and copies, on a small and on the whole box."""
    net = pn.load(MODELS / "acasxu_1_1.onnx").relu_network()
    rows = []
    for name, other in copies(net).items():
        for radius, budget in ((0.05, 10.0), (0.5, 20.0)):
            if radius == 0.5 and name != "int8 weights":
                continue
            box = pn.Box.cube(5, -radius, radius)
            seconds, answer = timed_diff(net, other, box=box, budget=budget)
            what, words = row(f"acasxu_1_1 and {name}, +-{radius}, budget {budget:g}", seconds, answer)
            rows.append((what, f"{words}; ratio {answer.gap_upper / answer.gap_lower:.2f}"))
    return rows


def shrink_rows() -> list[tuple[str, str]]:
    rows = []
    for name, box in (
        ("mnist_256x4_split_a.onnx.gz", None),
        ("mnist_256x4_split_b.onnx.gz", None),
        ("cifar_conv_base_split.onnx.gz", None),
        ("acasxu_1_1_pruned30.onnx", None),
        ("tll_2d_n16_0.onnx.gz", pn.Box.cube(2, -2, 2)),
    ):
        net = pn.load(MODELS / name)
        start = time.process_time()
        shrunk = pn.shrink(net, box=box, budget=20)
        where = "all inputs" if box is None else "box"
        rows.append(
            (f"shrink {name.split('.')[0]}, {where}", f"{shrunk}, {time.process_time() - start:.2f} s")
        )
    return rows


def large_row() -> tuple[str, str]:
    """In a process of its own, for its peak memory."""
    out = subprocess.run(
        [sys.executable, __file__, "--large"], check=True, capture_output=True, text=True
    ).stdout
    return "diff 784-2048-2048-2048-10 (11 M parameters) and a symmetric copy, all inputs", out.strip()


def large() -> None:
    rng = np.random.default_rng(0)
    widths = (784, 2048, 2048, 2048, 10)
    net = pn.ReluNetwork.from_layers(
        [(rng.normal(0, np.sqrt(2 / n), (m, n)), rng.normal(0, 0.1, m)) for n, m in pairwise(widths)]
    )
    seconds, answer = timed_diff(net, apply(random_symmetry(net, seed=1), net))
    print(f"{row('', seconds, answer)[1]}, peak {peak_gigabytes():.2f} GB")


def peak_gigabytes() -> float:
    """Of this program alone: what getrusage says begins with the memory of the parent process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in status if line.startswith("VmHWM"))) / 2**20


def run() -> list[tuple[str, str]]:
    shared = [*around_rows(), *controllers(), *pair_rows(), *shrink_rows()] if MODELS.is_dir() else []
    return [*shared, large_row()]


if __name__ == "__main__":
    if "--large" in sys.argv:
        large()
    else:
        for name, result in run():
            print(f"{name}: {result}")
