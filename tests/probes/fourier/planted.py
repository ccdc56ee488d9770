"""Classifiers that use known frequencies, and nothing else."""

import numpy as np

from pindown import ReluNetwork

SIDE = 16


def wave(*frequencies, side=SIDE):
    """Return the sum of cosines at these frequencies, an image."""
    rows, columns = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    return sum(np.cos(2 * np.pi * (a * rows + b * columns) / side) for a, b in frequencies)


def planted(*frequencies, scale=0.125, side=SIDE):
    """Return the linear classifier by the sign of these coefficients' real parts."""
    w = scale * wave(*frequencies, side=side)
    return ReluNetwork.from_layers([(w.reshape(1, -1), [0.0])], input_shape=(side, side))


def both_signs(*frequencies):
    """Return each frequency and its opposite, ascending."""
    return sorted({pair for a, b in frequencies for pair in ((a, b), (-a, -b))})


def noise(n, side=SIDE, seed=0):
    """Return images of white noise."""
    return np.random.default_rng(seed).standard_normal((n, side, side))
