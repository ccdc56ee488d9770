r"""Tolerances of each output: what counts as the same may differ from output to output.

With allowed gaps :math:`t_k`, two models are the same if :math:`|f_k - g_k| \le t_k` for all k. Outputs
are multiplied by :math:`s_k \ge t / t_k \ge 1` with :math:`t = \max_k t_k`; then one tolerance t serves
all: a scaled gap of at most t proves it, and bounds the gap itself. Whether an input shows the contrary
is looked at output by output. Factors have few digits, so that float64 multiplies the weights of files
without rounding; where weights have too many they are powers of two, up to twice as strict.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.model.builder import Builder
from pindown.model.graph import Model
from pindown.model.operations.dense import Scale
from pindown.network import ReluNetwork
from pindown.rounding import add_down, gamma, norm_up
from pindown.validation import positive

_MAX_POWER = 200  # of two, between the largest and the smallest tolerance
_BITS = 12


def of_outputs(name: str, value: Any, k: int) -> Array:
    """Return a tolerance for each of k outputs, (k,).

    Raises:
        ValueError: If it is neither a number nor k of them, or one is negative or not finite.

    >>> of_outputs("tol", 0.5, 2), of_outputs("tol", [0.5, 1], 2)
    (array([0.5, 0.5]), array([0.5, 1. ]))
    """
    if np.ndim(value) == 0:
        return np.full(k, positive(name, value, zero=True))
    values = [positive(name, entry, zero=True) for entry in np.ravel(np.asarray(value, dtype=object))]
    if np.ndim(value) != 1 or len(values) != k:
        raise ValueError(f"{name} must be a number, or one for each of the {k} outputs; got {value!r}.")
    return np.array(values)


def factors_of(allowed: Array, bits: int = _BITS) -> Array:
    """Return by what outputs are multiplied to compare them with one tolerance: numbers of some bits.

    Raises:
        ValueError: If some tolerances are zero and others are not, or they are too far apart.

    >>> factors_of(np.array([1.0, 0.25, 0.3]), bits=1), factors_of(np.array([1.0, 0.3]), bits=3)
    (array([1., 4., 4.]), array([1. , 3.5]))
    """
    top = allowed.max()
    if (allowed == top).all():
        return np.ones(len(allowed))
    if not allowed.min() > top * 2.0**-_MAX_POWER:
        raise ValueError(
            f"tolerances of outputs must be above 0 and within a factor of 1e60; got {allowed.min():g} "
            f"and {top:g}."
        )
    fraction, power = np.frexp(top / allowed)
    digits = np.floor(np.ldexp(fraction, bits))
    for _ in range(2):  # up, until the product is no longer below; that of one bit is not rounded
        product = np.ldexp(digits, power - bits) * allowed
        least = product if bits == 1 else np.nextafter(product, 0.0)
        digits += (least < top) & (allowed < top)
    return np.asarray(np.maximum(np.ldexp(digits, power - bits), 1.0))


def scaled_model(model: Model, factors: Array) -> Model:
    """Return a model with its outputs multiplied."""
    graph = Builder(model.literal_shape)
    tensors = [graph.input]
    for node in model.nodes:
        graph.place = node.name
        tensors.append(graph.add(node.operation, *(tensors[j] for j in node.inputs)))
    last = graph.add(Scale(factors.reshape(model.output_shape)), tensors[-1])
    return graph.model(last, input_shape=model.input_shape, dtype=model.dtype, notes=model.notes)


def scaled_network(net: ReluNetwork, factors: Array) -> ReluNetwork:
    """Return a network with its outputs multiplied."""
    W, b = net.layers[-1]
    weight = sp.csr_array(sp.diags_array(factors) @ W) if sp.issparse(W) else factors[:, None] * W
    return ReluNetwork((*net.layers[:-1], Affine(weight, factors * b)), net.input_shape)


def scales_exactly(net: ReluNetwork, bits: int = _BITS) -> bool:
    """Return whether products of the last layer's numbers with factors of some bits are float64."""
    W, b = net.layers[-1]
    for numbers in (W.data if sp.issparse(W) else W, b):
        whole = np.ldexp(np.frexp(numbers)[0], 53 - bits)
        if (whole != np.rint(whole)).any():
            return False
    return True


def gaps_at(joint: Joint, point: Array, relative: bool) -> Array:
    """Return the gap of each output at a point, proved, rounded down, (k,)."""
    f, g = joint.enclosed(point[None])
    apart = np.maximum(add_down(f.lower, -g.upper), add_down(g.lower, -f.upper))[0]
    gaps = np.maximum(np.nan_to_num(apart, nan=0.0, posinf=0.0, neginf=0.0), 0.0)
    if relative:
        gaps = np.nextafter(gaps / (1.0 + norm_up(point)) * (1.0 - gamma(8)), 0.0)
    return np.asarray(np.maximum(gaps, 0.0))
