"""Both layers trained together with Adam: what practice does, without the theorem."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array

_BATCH = 256


def joint_training(
    X: Array, y: Array, n_units: int, *, n_epochs: int, learning_rate: float, seed: int
) -> tuple[Array, Array]:
    """Return units and output weights after training on the logistic loss.

    Args:
        X: Points (m, n, d), patches of norm at most one.
        y: Labels 1 and -1.
        n_units: Hidden units.
        n_epochs: Passes through the data in batches of 256.
        learning_rate: Adam's.
        seed: Of start and batches.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    points, labels = torch.from_numpy(np.ascontiguousarray(X)), torch.from_numpy(y)
    d = X.shape[2]
    W = torch.randn(n_units, d, generator=generator, dtype=torch.float64) / d**0.5
    a = torch.randn(n_units, generator=generator, dtype=torch.float64) / n_units**0.5
    W.requires_grad_()
    a.requires_grad_()
    optimizer = torch.optim.Adam([W, a], lr=learning_rate)
    for _ in range(n_epochs):
        for batch in torch.randperm(len(X), generator=generator).split(_BATCH):
            optimizer.zero_grad()
            scores = torch.relu((points[batch] @ W.T).amax(dim=1)) @ a
            torch.nn.functional.softplus(-labels[batch] * scores).mean().backward()
            optimizer.step()
    return W.detach().numpy().copy(), a.detach().numpy().copy()
