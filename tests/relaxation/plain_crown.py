"""CROWN as its paper has it, on layers of matrices, in plain float64: to compare with."""

import numpy as np


def plain_crown(layers, low, high, rows):
    """Return bounds on ``rows @ f`` over a box, f the network of layers (W, b); W may be sparse.

    Intervals of what is known so far may be better than linear forms: the best of both counts.
    """
    bounds = []  # of what enters the ReLUs
    for i, (W, b) in enumerate(layers):
        ends = _image(W, b, *(np.maximum(bounds[-1], 0.0) if bounds else (low, high)))
        if i == len(layers) - 1:
            break
        open_sign = np.flatnonzero((ends[0] < 0) & (ends[1] > 0)) if i else np.zeros(0, dtype=int)
        forms = _dense(W[open_sign])
        for side, sign in enumerate((-1.0, 1.0)):
            found = _upper(layers[:i], bounds, sign * forms, sign * b[open_sign], low, high)
            ends[side][open_sign] = sign * np.minimum(sign * ends[side][open_sign], found)
        bounds.append(ends)
    best = _image(rows, 0.0, *ends)
    for side, sign in enumerate((-1.0, 1.0)):
        found = _upper(layers[:-1], bounds, sign * _dense(rows @ W), sign * (rows @ b), low, high)
        best[side] = sign * np.minimum(sign * best[side], found)
    return best


def _image(W, b, low, high):
    """Return the interval that an affine map makes of a box, (2, m)."""
    sparse = hasattr(W, "tocsr")
    positive, negative = (W.maximum(0.0), W.minimum(0.0)) if sparse else (W.clip(0.0), W.clip(None, 0.0))
    return np.array([positive @ low + negative @ high + b, positive @ high + negative @ low + b])


def _upper(layers, bounds, forms, offsets, low, high):
    """Bound forms (q, width) of the last of these layers' ReLUs from above."""
    for (W, b), (below, above) in list(zip(layers, bounds, strict=True))[::-1]:
        open_sign, on = (below < 0) & (above > 0), 1.0 * (below >= 0)
        chord = np.where(open_sign, above / np.where(open_sign, above - below, 1.0), on)
        shift = np.where(open_sign, -chord * below, 0.0)
        flat = np.where(open_sign, 1.0 * (above > -below), on)
        offsets = offsets + np.maximum(forms, 0.0) @ shift
        forms = np.maximum(forms, 0.0) * chord + np.minimum(forms, 0.0) * flat
        offsets = offsets + forms @ b
        forms = _dense((W.T @ forms.T).T)
    return offsets + np.maximum(forms, 0.0) @ high + np.minimum(forms, 0.0) @ low


def _dense(W):
    return W.toarray() if hasattr(W, "toarray") else np.asarray(W)
