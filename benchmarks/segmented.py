"""Segmented regression: proved optima against pwlf (differential evolution) and ruptures, in one run.

CPU time of one thread, kernels compiled before. Losses are sums of squares of continuous fits with the
same number of pieces. The change points that ruptures returns (its continuous linear model and exact
dynamic program, which take points to be equally spaced; at 2,000 points on a grid) are refitted by
continuous least squares with knots at them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pindown.learn import SegmentedRegressor

SIZES = ((200, 3), (200, 4), (2000, 5))
# ruptures' dynamic program fits every pair of change points: at 2,000 points it needs a grid of them.
GRID = {200: 1, 2000: 20}


def data(n: int, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    x = np.sort(rng.uniform(0, 10, n))
    return x, np.interp(x, [0, 2, 4, 6.5, 8, 10], [0, 1, -0.5, 0.4, 1.5, -1]) + noise * rng.normal(
        size=n
    )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    value = work()
    return value, time.process_time() - start


def ours(
    x: np.ndarray, y: np.ndarray, n_pieces: int, loss: str = "squared", budget: float = 120
) -> SegmentedRegressor:
    return SegmentedRegressor(n_pieces, loss=loss, budget=budget).fit(x, y)


def with_pwlf(x: np.ndarray, y: np.ndarray, n_pieces: int) -> float:
    import pwlf

    model = pwlf.PiecewiseLinFit(x, y, seed=0)
    model.fit(n_pieces)
    return float(model.ssr)


def with_ruptures(x: np.ndarray, y: np.ndarray, n_pieces: int) -> float:
    import ruptures

    jump = GRID[len(x)]
    found = ruptures.Dynp(model="clinear", min_size=2, jump=jump).fit(y).predict(n_bkps=n_pieces - 1)
    knots = x[np.array(found[:-1]) - 1]
    design = np.c_[np.ones_like(x), x, np.maximum(x[:, None] - knots, 0)]
    solution, *_ = np.linalg.lstsq(design, y, rcond=None)
    return float(np.sum((design @ solution - y) ** 2))


def compared(n: int, n_pieces: int) -> list[tuple[str, str]]:
    x, y = data(n)
    seconds = min(timed(lambda: ours(x, y, n_pieces).best_loss_)[1] for _ in range(10))
    model = ours(x, y, n_pieces)
    told = f"loss {model.best_loss_:.7f}, {seconds:.3f} s, {said(model)}"
    rows = [(f"{n_pieces} pieces, {n:,} points", told)]
    for name, peer in (("pwlf", with_pwlf), ("ruptures", with_ruptures)):
        loss, peer_seconds = timed(lambda peer=peer: peer(x, y, n_pieces))
        rows.append((
            f"{n_pieces} pieces, {n:,} points, with {name}",
            f"loss {loss:.7f} ({loss - model.best_loss_:+.2g}), {peer_seconds:.2f} s, "
            f"{peer_seconds / seconds:,.0f} times ours",
        ))  # fmt: skip
    return rows


def absolute_rows() -> list[tuple[str, str]]:
    rows = []
    for n, n_pieces in ((100, 4), (300, 3), (300, 4)):
        x, y = data(n)
        start = time.process_time()
        model = ours(x, y, n_pieces, "absolute")
        seconds = time.process_time() - start
        rows.append((
            f"absolute loss, {n_pieces} pieces, {n} points",
            f"loss {model.best_loss_:.7f}, {seconds:.2f} s, {said(model)}",
        ))  # fmt: skip
    return rows


def large_rows() -> list[tuple[str, str]]:
    """Sizes that the peers do not finish, and how the time grows at five pieces."""
    rows, sizes, taken = [], (2_500, 5_000, 10_000, 20_000), []
    for n in sizes:
        x, y = data(n)
        model, seconds = timed(lambda x=x, y=y: ours(x, y, 5))
        taken.append(seconds)
        rows.append((f"5 pieces, {n:,} points", f"{seconds:.2f} s, {said(model)}"))
    slope = np.polyfit(np.log(sizes), np.log(taken), 1)[0]
    last = np.log(taken[-1] / taken[-2]) / np.log(sizes[-1] / sizes[-2])
    rows.append(("growth at 5 pieces, 2,500 to 20,000 points", f"n^{slope:.2f}; last step n^{last:.2f}"))
    x, y = data(2_000)
    rng = np.random.default_rng(0)
    knots, heights = np.linspace(0, 10, 9), [0, 1, -0.5, 0.4, 1.5, -1, 0.5, -0.3, 0.8]
    for name, values in (
        ("eight planted", np.interp(x, knots, heights) + 0.2 * rng.normal(size=2_000)),
        ("a noisy sine", np.sin(2 * x) + 0.2 * rng.normal(size=2_000)),
        ("five planted, budget 30 s", y),
    ):
        model, seconds = timed(lambda values=values: ours(x, values, 8, budget=30))
        rows.append((f"8 pieces, 2,000 points, {name}", f"{seconds:.2f} s, {said(model)}"))
    return rows


def said(model: SegmentedRegressor) -> str:
    return "proved" if model.optimal_ else f"gap {model.gap_:.2g}"


def run() -> list[tuple[str, str]]:
    time.monotonic = time.process_time  # the clock of budgets: a busy machine does as much
    for loss in ("squared", "absolute"):
        SegmentedRegressor(2, loss=loss).fit(*data(20))
    return [row for n, n_pieces in SIZES for row in compared(n, n_pieces)] + [
        *large_rows(),
        *absolute_rows(),
    ]


if __name__ == "__main__":
    for what, result in run():
        print(f"{what}: {result}", flush=True)
