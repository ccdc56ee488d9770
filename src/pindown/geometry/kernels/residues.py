r"""Arithmetic modulo primes below :math:`2^{50}`, and the grid that a network's numbers lie on.

Every float64 is an odd integer times a power of two. So the coefficients of every unit, on whatever
cell, are multiples of one number :math:`2^{-g}`, its *grid*, which follows from the weights alone. A
multiple of a grid is an integer after scaling: it is zero if it is smaller than 1, or if it is zero
modulo primes whose product exceeds it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

from math import frexp, ldexp, log2

import numpy as np

from pindown.geometry.kernels import inner

# The largest primes below 2^50: a product of residues is then below 2^100, and its quotient by the
# prime comes out of float64 to within one.
PRIMES = tuple(
    2**50 - k for k in (27, 35, 51, 71, 113, 117, 131, 161, 195, 233, 267, 341, 351, 377, 423)
)
PRIMES += tuple(2**50 - k for k in (447, 545, 591, 603, 611, 651, 653, 665, 675))
BITS_PER_PRIME = 49.99  # each of them is above 2^49.99

GRID, SLOPE, SIZE, HEIGHT, EXACT = range(5)  # rows of Ties.measures

_WHOLE = 53  # bits of a float64's integer
_FAR = 900  # powers of two up to here, times an integer of so many bits, are float64 numbers


@inner
def times(a, b, prime):
    r"""Multiply two residues.

    The quotient :math:`ab / p < 2^{50}` computed in float64 errs by less than 1/2, so the difference
    below, whose 64-bit parts may overflow but cancel, is off by at most one prime.
    """
    quotient = np.int64(np.float64(a) * np.float64(b) / np.float64(prime))
    rest = a * b - quotient * prime
    if rest < 0:
        rest += prime
    elif rest >= prime:
        rest -= prime
    return rest


@inner
def split_float(value):
    """Return the odd integer m and the exponent e of ``value = m 2^e``; 0 and 0 for zero."""
    if value == 0.0:
        return np.int64(0), 0
    mantissa, exponent = frexp(value)
    whole = np.int64(ldexp(mantissa, _WHOLE))
    _, zeros = frexp(np.float64(whole & -whole))
    return whole >> (zeros - 1), exponent - _WHOLE + zeros - 1


@inner
def residue(value, prime):
    """Return the residue of a float64, taken as the exact number it is."""
    whole, exponent = split_float(value)
    return shifted(whole % prime, exponent, prime)  # a remainder is never negative


@inner
def shifted(result, exponent, prime):
    """Multiply a residue by a power of two."""
    base, count = np.int64(2), exponent
    if exponent < 0:
        base, count = (prime + 1) // 2, -exponent  # one half
    while count > 0:
        if count & 1:
            result = times(result, base, prime)
        base = times(base, base, prime)
        count >>= 1
    return result


@inner
def measure(net, reach, measures):
    r"""Measure the form of every hidden unit, whatever the states of the units below.

    Rows of ``measures``: the grid g; a bound on :math:`\log_2` of the sum of the slopes in absolute
    value; bounds on the absolute value on the box and on that of the constant; and whether
    float64 computes the form without rounding, because no coefficient exceeds :math:`2^{53 - g}`.
    """
    for level in range(net.hidden):
        for i in range(net.widths[level]):
            _measure_unit(net, reach, measures, level, i)
    for u in range(net.starts[net.hidden]):
        # A little more than computed: sums of positive numbers round by less than this.
        slope = measures[SLOPE, u]
        measures[SLOPE, u] = log2(slope) + 0.01 if slope > 0.0 else 0.0
        measures[SIZE, u] *= 1.01


@inner
def _measure_unit(net, reach, measures, level, i):
    n, unit = net.widths[level], net.starts[level] + i
    inputs = net.dim if level == 0 else net.widths[level - 1]
    below = 0 if level == 0 else net.starts[level - 1]
    _, exponent = split_float(net.biases[unit])
    grid, size, slope, exact = -exponent, abs(net.biases[unit]), 0.0, True
    height, empty = size, size == 0.0
    for j in range(inputs):
        w = net.weights[net.weight_starts[level] + j * n + i]
        if w != 0.0:
            _, exponent = split_float(w)
            if level == 0:
                term, slope, size = -exponent, slope + abs(w), size + abs(w) * reach[j]
            else:
                term = np.int64(measures[GRID, below + j]) - exponent
                slope += abs(w) * measures[SLOPE, below + j]
                size += abs(w) * measures[SIZE, below + j]
                height += abs(w) * measures[HEIGHT, below + j]
                exact = exact and measures[EXACT, below + j] != 0.0
            grid = term if empty else max(grid, term)
            empty = False
    # One bit is left to the rounding of these sums.
    fits = abs(grid) < _FAR and log2(max(slope, height)) + 1.0 + grid <= _WHOLE
    measures[GRID, unit], measures[SLOPE, unit], measures[SIZE, unit] = grid, slope, size
    measures[HEIGHT, unit], measures[EXACT, unit] = height, 1.0 if exact and (fits or empty) else 0.0
