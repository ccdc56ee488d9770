r"""ODD-MAX-BIT, and the function of Chattopadhyay and Mande built from it.

ODD-MAX-BIT asks for the parity of the largest index of an active bit: a threshold gate with exponential
weights. Composed with equalities of bit strings it has a large sign-rank, yet two layers of threshold
gates compute it.

True is -1 throughout.

Mukherjee 2020, section 2.5.1, (2.9) and Theorem 2.5.6.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.circuits.boolean.andreev import Variant
from pindown.circuits.boolean.cube import Signs, sign_rows
from pindown.circuits.boolean.threshold import ThresholdCircuit, ThresholdGate
from pindown.validation import at_least, choice

Layout: TypeAlias = Literal["pairs", "halves"]


def odd_max_bit(X: ArrayLike, *, active: int = 1) -> Any:
    r"""Return -1 if the largest index i of an active bit is odd (i counts from 1), else +1.

    .. math:: \mathrm{OMB}(x) = -1 \iff \sum_{i=1}^n (-1)^{i+1} 2^i (1 + x_i) \ge \tfrac12

    Args:
        X: Signs, (N, n) or (n,).
        active: The sign that makes a bit active: +1 as in the formula, or -1.

    Returns:
        Signs; +1 where no bit is active.

    Example:
        >>> odd_max_bit([[1, -1, 1, -1], [1, 1, -1, -1], [-1, -1, -1, -1]]).tolist()
        [-1, 1, 1]

    Mukherjee 2020, section 2.5.1.
    """
    _require_active(active)
    rows, single = sign_rows(X)
    n = rows.shape[1]
    on = rows == active
    largest = np.where(on.any(axis=1), n - np.argmax(on[:, ::-1], axis=1), 0)
    signs = np.where(largest % 2, -1, 1).astype(np.int8)
    return int(signs[0]) if single else signs


def odd_max_bit_gate(n: int, *, active: int = 1) -> ThresholdGate:
    """Return ODD-MAX-BIT as the threshold gate of its formula.

    >>> odd_max_bit_gate(3)([-1, -1, 1])
    -1
    """
    _require_active(active)
    at_least(1, n=n)
    powers = _alternating_powers(n)
    # +1 exactly where the sum is below 1/2; the sum is whole, so it is never equal to 1/2.
    return ThresholdGate.of([-active * p for p in powers], Fraction(1, 2) - sum(powers))


def or_width(n: int) -> int:
    r"""Return the fan-in :math:`n^{1/3} + \log_2 n` of the "or" gates, to the nearest whole number.

    >>> or_width(8), or_width(4096)
    (5, 28)
    """
    at_least(1, n=n)
    return max(1, round(n ** (1 / 3) + float(np.log2(n))))


def chattopadhyay_mande(
    X: ArrayLike, n: int, *, t: int | None = None, omb_active: int = 1, layout: Layout = "pairs"
) -> Any:
    r"""Evaluate :math:`\mathrm{OMB}_n \circ \mathrm{OR}_t \circ \mathrm{XOR}_2` on 2 n t bits.

    The exclusive or of two signs is their product, and "or" is -1 if some input is -1. A block of t
    pairs thus gives +1 if its two strings are equal; with ``omb_active=1`` the function looks for the
    last block of equal strings.

    Args:
        X: Signs, (N, 2 n t) or (2 n t,).
        n: Number of blocks.
        t: Pairs in a block; :func:`or_width` of n if None.
        omb_active: The active sign of ODD-MAX-BIT.
        layout: ``"pairs"``: u1, v1, u2, v2, ...; ``"halves"``: all u, then all v, as (x, y).

    Returns:
        Signs.

    Example:
        Two blocks of one pair; only the first holds equal bits, and its index is odd:

        >>> chattopadhyay_mande([1, 1, 1, -1], 2, t=1)
        -1

    Mukherjee 2020, (2.9).
    """
    t = _fan_in(n, t)
    rows, single = sign_rows(X)
    if rows.shape[1] != 2 * n * t:
        raise ValueError(f"the function reads 2 n t = {2 * n * t} bits; got {rows.shape[1]}.")
    u, v = _strings(rows, layout)
    differ = (u * v).reshape(len(rows), n, t)
    blocks = differ.min(axis=2)  # "or": true, -1, if some pair differs
    signs = odd_max_bit(blocks, active=omb_active)
    return int(signs[0]) if single else signs


def chattopadhyay_mande_circuit(
    n: int, *, t: int | None = None, omb_active: int = 1, layout: Layout = "pairs"
) -> ThresholdCircuit:
    r"""Return the function as two layers of threshold gates, 2 n + 1 in all.

    The strings of a block are equal if the numbers they spell are: with
    :math:`L = \sum_k 2^k (u_k - v_k)`, the signs of :math:`L` and :math:`-L` add up to 2 if
    :math:`L = 0` and to 0 otherwise, so the "or" of the block is their sum minus 1. ODD-MAX-BIT
    reads it.

    Args:
        n: Number of blocks.
        t: Pairs in a block; :func:`or_width` of n if None.
        omb_active: The active sign of ODD-MAX-BIT.
        layout: Order of the inputs, as in :func:`chattopadhyay_mande`.

    Example:
        >>> circuit = chattopadhyay_mande_circuit(2, t=1)
        >>> circuit, circuit([1, 1, 1, -1]).item()
        (ThresholdCircuit(4 -> 4 -> 1: depth 2, 5 gates), -1)

    Mukherjee 2020, Theorem 2.5.6 (from Chattopadhyay and Mande 2017).
    """
    t = _fan_in(n, t)
    bottom = []
    for block in range(n):
        row = [0] * (2 * n * t)
        for k in range(t):
            u, v = _positions(block * t + k, n * t, layout)
            row[u], row[v] = 2**k, -(2**k)
        bottom += [ThresholdGate.of(row), ThresholdGate.of([-a for a in row])]
    top = odd_max_bit_gate(n, active=omb_active)
    weights = [w for w in top.weights for _ in range(2)]
    output = ThresholdGate.of(weights, top.bias - sum(top.weights))
    return ThresholdCircuit((tuple(bottom), (output,)))


def log2_sign_rank_lower(n: int, *, variant: Variant = "corrected") -> float:
    r"""Return :math:`\log_2` of the known lower bound on the function's sign-rank.

    .. math:: \operatorname{sign\text{-}rank} \ge 2^{n^{1/3} / 81 - 3}

    Args:
        n: Number of blocks.
        variant: ``"as_printed"`` has n in place of :math:`n^{1/3}`, which is more than
            :func:`sign_rank_upper_of_function` allows.

    >>> round(log2_sign_rank_lower(1_000_000_000), 4)
    9.3457

    Mukherjee 2020, Theorem 2.5.6, corrected as in the proof of Theorem 2.5.5.
    """
    choice("variant", variant, ("corrected", "as_printed"))
    _fan_in(n, 1)
    return (n if variant == "as_printed" else n ** (1 / 3)) / 81 - 3


def sign_rank_upper_of_function(n: int, *, t: int | None = None) -> int:
    r"""Return the upper bound :math:`1 + n 2^t` on the function's sign-rank, in the halves (x, y).

    The function is the sign of :math:`\frac12 \pm \sum_i (-1)^{i+1} 2^{i+1} E_i`, where :math:`E_i`
    compares two strings of t bits: a matrix of rank :math:`2^t`.

    >>> sign_rank_upper_of_function(2, t=1)
    5
    """
    return 1 + n * 2 ** _fan_in(n, t)


def _strings(rows: Signs, layout: str) -> tuple[Signs, Signs]:
    choice("layout", layout, ("pairs", "halves"))
    if layout == "pairs":
        return rows[:, ::2], rows[:, 1::2]
    half = rows.shape[1] // 2
    return rows[:, :half], rows[:, half:]


def _positions(k: int, pairs: int, layout: str) -> tuple[int, int]:
    choice("layout", layout, ("pairs", "halves"))
    return (2 * k, 2 * k + 1) if layout == "pairs" else (k, pairs + k)


def _alternating_powers(n: int) -> list[int]:
    return [(-1) ** (i + 1) * 2**i for i in range(1, n + 1)]


def _fan_in(n: int, t: int | None) -> int:
    t = or_width(n) if t is None else t
    at_least(1, n=n, t=t)
    return t


def _require_active(active: int) -> None:
    if active not in (-1, 1):
        raise ValueError(f"the active sign is +1 or -1; got {active!r}.")
