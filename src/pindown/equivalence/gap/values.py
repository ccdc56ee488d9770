"""Values, gaps and slopes of networks at many points, in float64, where some may overflow."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.network import ReluNetwork

_ROW_ENTRIES = 2**22  # activations evaluated at once: 32 MB


def gaps_at(a: ReluNetwork, b: ReluNetwork, X: Array) -> Array:
    """Return ``max_k |a_k - b_k|`` at each row, in float64; 0 where a network overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.max(np.abs(values_at(a, X) - values_at(b, X)), axis=1)
    return np.where(np.isfinite(gaps), gaps, 0.0)


def values_at(net: ReluNetwork, X: Array) -> Array:
    """Evaluate, infinite values allowed."""
    rows = max(1, _ROW_ENTRIES // max(net.widths))
    parts = []
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), rows):
            z = net.layers[0](X[start : start + rows])
            for layer in net.layers[1:]:
                z = layer(np.maximum(z, 0.0))
            parts.append(z)
    return np.concatenate(parts) if parts else np.zeros((0, net.out_features))


def gradients(net: ReluNetwork, X: Array, rows: Array, layer: int | None = None) -> Array:
    """Return the slopes of ``rows[i] @ z`` at X[i], z the output or what enters a ReLU layer; (n, d)."""
    depth = net.depth if layer is None else layer + 1
    masks = []
    with np.errstate(over="ignore", invalid="ignore"):
        z = X
        for i, affine in enumerate(net.layers[: depth - 1]):
            z = affine(np.maximum(z, 0.0) if i else z)
            masks.append(z >= 0)
        g = rows
        for affine, mask in zip(reversed(net.layers[:depth]), [*reversed(masks), None], strict=True):
            g = affine.pull_back(g)
            if mask is not None:
                g = g * mask
    return np.nan_to_num(g, nan=0.0, posinf=0.0, neginf=0.0)
