"""Small networks that float64 finds hard: mixed scales, cancelling units, ties, huge and tiny boxes."""

from itertools import pairwise

import numpy as np

from pindown import ReluNetwork
from pindown.geometry import Box

HOSTILE = ("mixed scales", "half integers", "no bias", "near twins", "layer scales", "cancelling", "far")


def hostile_network(rng, d, family, outputs=1):
    """Draw a network of a family, and a box for it."""
    widths = [d, *rng.integers(2, 7 if d < 3 else 5, rng.integers(1, 4)), outputs]
    layers = []
    for i, o in pairwise(widths):
        W, b = rng.standard_normal((o, i)), rng.standard_normal(o)
        if family == "mixed scales":
            W, b = W * 10.0 ** rng.uniform(-12, 12, W.shape), b * 10.0 ** rng.uniform(-12, 12, o)
        elif family == "half integers":
            W, b = np.round(2 * W) / 2, np.round(b)
        elif family == "no bias":
            b = np.zeros(o)
        elif family == "near twins" and o > 1:
            W[1], b[1] = W[0], b[0] * (1 + rng.choice([0, 1e-16, 1e-12]))
        elif family == "layer scales":
            W, b = W * 10.0 ** rng.uniform(-30, 30), b * 10.0 ** rng.uniform(-30, 30)
        elif family == "far":
            W, b = W * 10.0 ** rng.uniform(-120, 120), b * 10.0 ** rng.uniform(-120, 120)
        layers.append((W, b))
    if family == "cancelling":  # two equal units, huge and almost opposite weights behind them
        large = 10.0 ** rng.integers(3, 16)
        layers[0][0][1], layers[0][1][1] = layers[0][0][0], layers[0][1][0]
        layers[1][0][:, 0], layers[1][0][:, 1] = large, 1 - large
    center, radius = rng.choice([0.0, 0.0, 1.0]), 10.0 ** rng.choice([0, 0, 1, 12, -9])
    return ReluNetwork.from_layers(layers), Box.cube(d, center - radius, center + radius)
