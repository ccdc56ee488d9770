"""Actions that tests of layers share: orthogonal ones, and ones in a skewed basis."""

import numpy as np
import torch

from pindown.symmetry import dihedral


def rotations(n):
    angles = 2 * np.pi * np.arange(n) / n
    return np.moveaxis(
        np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]), 2, 0
    )


def polygon(n):
    """The dihedral group as rotations and reflections of the plane."""
    turned = rotations(n)
    return dihedral(n).acting_by(np.concatenate([turned, turned @ np.diag([1.0, -1.0])]))


def skewed(rep, seed):
    """The same representation in a basis that is not orthogonal."""
    matrices = rep if isinstance(rep, np.ndarray) else rep.matrices
    d = matrices.shape[1]
    S = np.eye(d) + 0.5 * np.random.default_rng(seed).standard_normal((d, d))
    return np.linalg.solve(S, matrices @ S)


def draw(*shape, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).standard_normal(shape))


def noisy(layer):
    """Give the layer random parameters, biases too."""
    rng = torch.Generator().manual_seed(1)
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return layer
