"""Both layers trained together with Adam: what practice does, without the theorem."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.learn.gates.progress import watched

_BATCH = 256


def joint_training(
    X: Array,
    y: Array,
    n_units: int,
    *,
    n_epochs: int,
    learning_rate: float,
    seed: int,
    verbose: int = 0,
    device: Any = "cpu",
) -> tuple[Array, Array, int]:
    """Return units, output weights and finished epochs of training on the logistic loss.

    An interruption keeps the weights there are, with a warning.

    Args:
        X: Points (m, n, d), patches of norm at most one.
        y: Labels 1 and -1.
        n_units: Hidden units.
        n_epochs: Passes through the data in batches of 256.
        learning_rate: Adam's.
        seed: Of start and batches.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.
        device: Where to train; start and batches are drawn on the processor.

    Raises:
        ValueError: If the weights left the finite numbers.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    points, labels = (torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in (X, y))
    d = X.shape[2]
    W = torch.randn(n_units, d, generator=generator, dtype=torch.float64) / d**0.5
    a = torch.randn(n_units, generator=generator, dtype=torch.float64) / n_units**0.5
    W, a = W.to(device).requires_grad_(), a.to(device).requires_grad_()
    optimizer = torch.optim.Adam([W, a], lr=learning_rate)
    done = 0
    try:
        for epoch in watched(n_epochs, verbose, "joint training"):
            for batch in torch.randperm(len(X), generator=generator).split(_BATCH):
                optimizer.zero_grad()
                scores = torch.relu((points[batch] @ W.T).amax(dim=1)) @ a
                torch.nn.functional.softplus(-labels[batch] * scores).mean().backward()
                optimizer.step()
            done = epoch + 1
    except KeyboardInterrupt:
        warnings.warn("interrupted: the weights so far are kept", stacklevel=4)
    if not bool(torch.isfinite(W).all() and torch.isfinite(a).all()):
        raise ValueError(
            f"joint training diverged with learning_rate {learning_rate:g}; use a smaller one."
        )
    return W.detach().cpu().numpy().copy(), a.detach().cpu().numpy().copy(), done
