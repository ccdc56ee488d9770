r"""The detector's networks as piecewise-linear functions of a row of X, exactly.

Standardising is affine, and holding a feature within a box is two ReLU units,
:math:`\mathrm{clip}(z) = -B + \rho(z + B) - \rho(z - B)`; so the mean of the members is one network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.learn.one_class.detector import LocalMaximaDetector

Layers = list[tuple[Any, Array]]


def learned_network(detector: LocalMaximaDetector) -> ReluNetwork:
    """Return the mean of the members' log-odds of c, before calibration.

    Raises:
        ValueError: If the networks are not fully connected with ReLU units.
    """
    if detector.plan_.ablation == "h":
        return potential_network(detector)
    return _mean_network(detector, detector.ensemble_.members)


def potential_network(detector: LocalMaximaDetector) -> ReluNetwork:
    """Return the potential of h: the log-odds of h(x, x) as a function of x."""
    return _mean_network(detector, detector.ensemble_.comparators)


def membership_network(detector: LocalMaximaDetector) -> ReluNetwork:
    """Return the log-odds of membership up to the strictly increasing calibration, if piecewise linear.

    Raises:
        ValueError: If distances are part of the score, or the networks are not plain ReLU networks.
    """
    if detector.density_ is not None:
        raise ValueError(
            "membership is a hybrid with nearest-neighbour distances, which no ReLU network equals; "
            "learned_network_ is its learned part, and ingredients without 'density' make it all."
        )
    return learned_network(detector)


def _mean_network(detector: LocalMaximaDetector, nets: list[Any]) -> ReluNetwork:
    if detector.plan_.membership["kind"] != "perceptron":
        raise ValueError(
            f"networks of kind {detector.plan_.membership['kind']!r} are not written as one ReLU "
            "network (on images c names the kind of a negative too, and its log-odds are no "
            "piecewise-linear function); vectors with the default preset are."
        )
    bound = detector.plan_.membership["bound"]
    centre, scale = detector.frame_.centre, detector.frame_.scale
    slope = sp.diags_array(1.0 / scale)  # dense, it would take d times d numbers
    clip: Layers = [
        (
            sp.csr_array(sp.vstack([slope, slope])),
            np.concatenate([-centre / scale + bound, -centre / scale - bound]),
        )
    ]
    weights = [[_arrays(layer) for layer in net.body if hasattr(layer, "weight")] for net in nets]
    depth = len(weights[0])
    for level in range(depth):
        parts = [member[level] for member in weights]
        if level == 0:
            W = np.vstack([np.hstack([W, -W]) for W, _ in parts])
            b = np.concatenate([b - bound * W.sum(axis=1) for W, b in parts])
        elif level < depth - 1:
            W = sp.csr_array(sp.block_diag([W for W, _ in parts]))
            b = np.concatenate([b for _, b in parts])
        else:
            W = np.hstack([W for W, _ in parts]) / len(parts)
            b = np.mean([b for _, b in parts], axis=0)
        clip.append((W, b))
    return ReluNetwork.from_layers(clip)


def _arrays(layer: Any) -> tuple[Array, Array]:
    return layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
