"""Sums and compositions for both kinds of network, in float64 or over the rationals.

A construction is written once and asked for in either arithmetic: numbers that are all integers or
fractions give a :class:`~pindown.rational.RationalNetwork`, one float among them a
:class:`~pindown.network.ReluNetwork`. Mukherjee 2020, Lemmas 2.A.2, 2.A.3 and 2.A.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import isfinite
from numbers import Rational, Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from pindown import calculus
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork, Rationals

Number: TypeAlias = int | float | Fraction
Net: TypeAlias = ReluNetwork | RationalNetwork


def alike(values: Iterable[Any], what: str) -> list[Any]:
    """Return the numbers all as fractions, or all as floats if one of them is a float.

    Args:
        values: Real numbers.
        what: What they are, for the error.

    Raises:
        TypeError: If one is not a real number.
        ValueError: If one is not finite, or too large to be a float beside floats.

    >>> alike([1, Fraction(1, 2)], "slopes"), alike([1, 0.5], "slopes")
    ([Fraction(1, 1), Fraction(1, 2)], [1.0, 0.5])
    """
    numbers = [value.item() if isinstance(value, np.generic) else value for value in values]
    for value in numbers:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{what} must be real numbers; got {value!r}.")
        if not isinstance(value, Rational) and not isfinite(value):
            raise ValueError(f"{what} must be finite; got {value}.")
    if all(isinstance(value, Rational) for value in numbers):
        return [Fraction(value) for value in numbers]
    try:
        return [float(value) for value in numbers]
    except OverflowError:
        raise ValueError(f"{what} must fit float64 if one of them is a float; one is larger.") from None


def network(layers: Iterable[tuple[Any, Any]], *, exact: bool) -> Net:
    """Build a network of the kind that is asked for; weights may be sparse matrices."""
    if not exact:
        return ReluNetwork.from_layers(layers)
    return RationalNetwork(tuple((_fractions(W), _fractions(b)) for W, b in layers))


def hidden_widths(net: Net) -> tuple[int, ...]:
    """Return the widths of the ReLU layers."""
    if isinstance(net, ReluNetwork):
        return net.hidden_widths
    return tuple(len(b) for _, b in net.layers[:-1])


def size(net: Net) -> int:
    """Return the number of ReLUs.

    >>> size(RationalNetwork.from_layers([([[1], [-1]], [0, 0]), ([[1, 1]], [0])]))
    2
    """
    return sum(hidden_widths(net))


def depth(net: Net) -> int:
    """Return the number of affine maps."""
    return len(net.layers)


def compose(outer: Net, inner: Net) -> Net:
    """Return ``x -> outer(inner(x))``; sizes add, depths add less one."""
    if isinstance(outer, ReluNetwork) and isinstance(inner, ReluNetwork):
        return calculus.compose(outer, inner)
    (W, b), (V, c) = rational(outer).layers[0], rational(inner).layers[-1]
    if W.shape[1] != len(c):
        raise ValueError(
            f"to compose, the outer network must take what the inner one gives; "
            f"it takes {W.shape[1]}, the inner gives {len(c)}."
        )
    joint = (_product(W, V), _product(W, c[:, None])[:, 0] + b)
    return RationalNetwork((*rational(inner).layers[:-1], joint, *rational(outer).layers[1:]))


def stack(networks: Sequence[Net]) -> Net:
    r"""Return :math:`x \mapsto (f_1(x), \dots, f_m(x))`; shallow ones are padded."""
    floats = [net for net in networks if isinstance(net, ReluNetwork)]
    if len(floats) == len(networks):
        return calculus.stack(floats)
    deepest = max(depth(net) for net in networks)
    padded = [_padded(rational(net), deepest) for net in networks]
    if len({net.layers[0][0].shape[1] for net in padded}) > 1:
        sizes = [net.layers[0][0].shape[1] for net in padded]
        raise ValueError(f"networks that share an input need equal input sizes; got {sizes}.")
    first = tuple(np.concatenate([net.layers[0][part] for net in padded]) for part in (0, 1))
    rest = [
        (
            _block_diagonal([net.layers[i][0] for net in padded]),
            np.concatenate([net.layers[i][1] for net in padded]),
        )
        for i in range(1, deepest)
    ]
    return RationalNetwork(((first[0], first[1]), *rest))


def linear_combination(coefficients: Sequence[Any], networks: Sequence[Net]) -> Net:
    r"""Return :math:`x \mapsto \sum_i c_i f_i(x)` for networks with equal output sizes.

    >>> third = RationalNetwork.from_layers([([[Fraction(1, 3)]], [0])])
    >>> linear_combination([1, 2], [third, third])([1])
    [Fraction(1, 1)]
    """
    if len(coefficients) != len(networks):
        raise ValueError(f"{len(coefficients)} coefficients for {len(networks)} networks.")
    floats = [net for net in networks if isinstance(net, ReluNetwork)]
    if len(floats) == len(networks):
        return calculus.linear_combination([float(c) for c in coefficients], floats)
    outputs = {len(net.layers[-1][1]) for net in networks}
    if len(outputs) > 1:
        raise ValueError(f"networks to add need equal output sizes; got {sorted(outputs)}.")
    (k,) = outputs
    total = np.concatenate([Fraction(c) * np.eye(k, dtype=int).astype(object) for c in coefficients], 1)
    return compose(RationalNetwork.from_layers([(total, [0] * k)]), stack(networks))


def rational(net: Net) -> RationalNetwork:
    """Return the network over the rationals, where every float is the number it is."""
    if isinstance(net, ReluNetwork):
        return net.as_fractions()
    require_networks(net)
    return net


def require_networks(*nets: object) -> None:
    """Refuse what is no network of either kind."""
    for net in nets:
        if not isinstance(net, ReluNetwork | RationalNetwork):
            raise TypeError(f"a ReluNetwork or a RationalNetwork is needed; got {type(net).__name__}.")


def _padded(net: RationalNetwork, to: int) -> RationalNetwork:
    """Pass the outputs on as their positive and negative parts, two ReLUs each and layer."""
    extra = to - len(net.layers)
    if extra == 0:
        return net
    W, b = net.layers[-1]
    eye = np.eye(len(b), dtype=int)
    middle = (np.eye(2 * len(b), dtype=int), [0] * (2 * len(b)))
    split = (np.concatenate([W, -W]), np.concatenate([b, -b]))
    join = (np.concatenate([eye, -eye], axis=1), [0] * len(b))
    added = RationalNetwork.from_layers([split, *[middle] * (extra - 1), join])
    return RationalNetwork((*net.layers[:-1], *added.layers))


def _fractions(values: Any) -> Rationals:
    """Return an object array of fractions; zeros, which are most entries, are one object."""
    given = values.toarray() if sp.issparse(values) else np.asarray(values, dtype=object)
    out: Rationals = np.full(given.shape, Fraction(0), dtype=object)
    for index in zip(*np.nonzero(given), strict=True):
        value = given[index]
        out[index] = Fraction(value.item() if isinstance(value, np.generic) else value)
    return out


def _product(W: Rationals, V: Rationals) -> Rationals:
    """Return ``W @ V``, where most entries of W are zero: that of many blocks side by side."""
    out: Rationals = np.full((W.shape[0], V.shape[1]), Fraction(0), dtype=object)
    for i, j in zip(*np.nonzero(W), strict=True):
        out[i] += W[i, j] * V[j]
    return out


def _block_diagonal(matrices: Sequence[Rationals]) -> Rationals:
    rows, columns = (sum(m.shape[axis] for m in matrices) for axis in (0, 1))
    whole: Rationals = np.full((rows, columns), Fraction(0), dtype=object)
    i = j = 0
    for m in matrices:
        whole[i : i + m.shape[0], j : j + m.shape[1]] = m
        i, j = i + m.shape[0], j + m.shape[1]
    return whole
