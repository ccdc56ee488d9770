"""Small chains whose largest values can be found by trying all slopes."""

import itertools

import numpy as np


def random_layers(rng, *, source, widths):
    sizes = [source, *widths]
    layers = [rng.standard_normal((m, n)) for n, m in itertools.pairwise(sizes)]
    return layers, rng.standard_normal(widths[-1])


def all_slopes(widths):
    return itertools.product(*(itertools.product((0.0, 1.0), repeat=n) for n in widths))


def reached(layers, w, corner, slopes):
    z = layers[0] @ corner
    for W, slope in zip(layers[1:], slopes, strict=False):
        z = W @ (np.array(slope) * z)
    return float(w @ (np.array(slopes[-1]) * z))


def largest_at(layers, w, corner):
    widths = [len(W) for W in layers]
    return max(reached(layers, w, corner, slopes) for slopes in all_slopes(widths))
