r"""The detector's networks as piecewise-linear functions of a row of X, exactly.

Standardising is affine, bending a feature takes one ReLU unit per bend, and holding it within a box two,
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
    from pindown.learn.one_class.frame import Frame

Layers = list[tuple[Any, Array]]

# A change of slope below this fraction of the slope is rounding.
_STRAIGHT = 1e-12


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
    first, (slope, shift) = _seen_by_networks(detector.frame_)
    clip: Layers = [
        *first,
        (sp.csr_array(sp.vstack([slope, slope])), np.concatenate([shift + bound, shift - bound])),
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


def _seen_by_networks(frame: Frame) -> tuple[Layers, tuple[Any, Array]]:
    """Layers, and the affine map that makes the networks' inputs of what comes out of them."""
    # Diagonal matrices stay sparse: dense, they would take d times d numbers.
    scaled = sp.csr_array(sp.diags_array(1.0 / frame.scale)), -frame.centre / frame.scale
    if frame.bending is None:
        return [], scaled
    knots, values, slopes = frame.bending.knots, frame.bending.values, frame.bending.slopes
    turns = np.diff(slopes, axis=1)
    feature, bend = np.nonzero(np.abs(turns) > _STRAIGHT * slopes[:, :1])
    every = np.arange(len(knots))
    # Units: above the first knot, below it, and above each knot where the slope changes.
    source = np.concatenate([every, every, feature])
    sign = np.concatenate([np.ones(len(every)), -np.ones(len(every)), np.ones(len(feature))])
    place = np.concatenate([knots[:, 0], knots[:, 0], knots[feature, bend + 1]])
    units = sp.csr_array(scaled[0][source] * sign[:, None]), sign * (scaled[1][source] - place)
    weight = np.concatenate([slopes[:, 0], -slopes[:, 0], turns[feature, bend]])
    gather = sp.csr_array((weight, (source, np.arange(len(source)))), shape=(len(every), len(source)))
    return [units], (gather, values[:, 0])


def _arrays(layer: Any) -> tuple[Array, Array]:
    return layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
