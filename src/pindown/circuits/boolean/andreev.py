r"""Andreev's function: a table, a matrix whose row parities say which entry to read, and lower bounds.

.. math:: A_n(x, a) = x_{\mathrm{bin}(z)}, \qquad z_i = \bigoplus_j a_{ij},
    \qquad x \in \{0,1\}^{\lfloor n/2 \rfloor},\ a \in \{0,1\}^{L \times \lfloor n / (2 L) \rfloor},
    \ L = \lfloor \log_2 (n/2) \rfloor .

Few threshold gates over ReLU gates agree with it. Under a random restriction it becomes a random
function of :math:`k = \log_2(n/2)` bits, while most gates collapse; the few that remain compute too few
functions to agree with a random one. Constants are open there: :class:`OrderOfGrowth` carries 1 in
their place, and says so.

Entries of the table are counted from 0, and the first row gives the most significant bit of the address.
The inputs are the table, then the matrix row by row; bits that are left over, and entries of the table
from :math:`2^L` on, are ignored.

Mukherjee 2020, Definition 10, Theorem 2.5.4 and section 2.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.circuits.boolean.cube import Alphabet, Signs, sign_rows, to_bits, to_pm
from pindown.circuits.boolean.restrictions import Restriction
from pindown.validation import at_least, choice

Variant: TypeAlias = Literal["corrected", "as_printed"]
_MAX_POWER = 1000  # 2^1001 is still a float64


@dataclass(frozen=True)
class AndreevLayout:
    """Where Andreev's function on n bits finds its table and its matrix.

    Attributes:
        n: Number of inputs, at least 4.

    Example:
        >>> layout = AndreevLayout(16)
        >>> layout.table_size, layout.address_bits, layout.columns, layout.unused
        (8, 3, 2, 2)
    """

    n: int

    def __post_init__(self) -> None:
        at_least(4, n=self.n)  # fewer have no address

    @property
    def table_size(self) -> int:
        """Number of table bits, floor(n / 2)."""
        return self.n // 2

    @property
    def address_bits(self) -> int:
        """L = floor(log2(n / 2)), the number of rows."""
        return (self.n // 2).bit_length() - 1

    @property
    def columns(self) -> int:
        """Number of columns, floor(n / (2 L))."""
        return self.n // (2 * self.address_bits)

    @property
    def unused(self) -> int:
        """Number of inputs after the matrix."""
        return self.n - self.table_size - self.address_bits * self.columns

    def row(self, i: int) -> range:
        """Return the inputs that hold row i of the matrix."""
        start = self.table_size + i * self.columns
        return range(start, start + self.columns)


def andreev_function(X: ArrayLike, *, alphabet: Alphabet = "bits") -> Signs | int:
    """Evaluate Andreev's function on the bits of each row.

    Args:
        X: Inputs (N, n) or (n,), n >= 4.
        alphabet: ``"bits"`` (0 and 1) or ``"pm"`` (1 is true, written -1), for inputs and values alike.

    Returns:
        One value for each row.

    Example:
        Table 0, 0, 0, 1, matrix rows (1, 0) and (1, 0): both parities are 1, the address is 3.

        >>> andreev_function([0, 0, 0, 1, 1, 0, 1, 0])
        1

    Mukherjee 2020, Definition 10.
    """
    signs, single = sign_rows(X, alphabet=alphabet)
    bits = to_bits(signs)
    layout = AndreevLayout(bits.shape[1])
    address = np.zeros(len(bits), dtype=np.int64)
    for i in range(layout.address_bits):
        address = 2 * address + bits[:, list(layout.row(i))].sum(axis=1) % 2
    values = bits[np.arange(len(bits)), address]
    out = values if alphabet == "bits" else to_pm(values)
    return int(out[0]) if single else out


def andreev_restriction(table: ArrayLike, n: int, rng: np.random.Generator) -> Restriction:
    """Fix the table of Andreev's function, and all of its matrix at random but one bit in each row.

    Args:
        table: floor(n / 2) bits, 0 or 1.
        n: Number of inputs.
        rng: Source of randomness.

    Returns:
        The restriction, in signs (-1 is 1); bits that the function ignores are fixed too.

    Example:
        >>> rho = andreev_restriction([0, 1], 4, np.random.default_rng(0))
        >>> rho.values[:2], len(rho.free)
        ((1, -1), 1)

    Mukherjee 2020, Definition 15.
    """
    layout = AndreevLayout(n)
    signs = to_pm(table)
    if signs.shape != (layout.table_size,):
        raise ValueError(f"the table has {layout.table_size} bits for n = {n}; got shape {signs.shape}.")
    values: list[int | None] = [*signs.tolist(), *rng.choice([-1, 1], n - len(signs)).tolist()]
    for i in range(layout.address_bits):
        values[int(rng.choice(layout.row(i)))] = None
    return Restriction(tuple(values))


def address_mask(restriction: Restriction) -> int:
    """Return the address that the fixed bits of the matrix add to the free ones, bit by bit.

    If the free bits spell ``address``, the restricted function reads entry ``address ^ mask``.

    >>> address_mask(Restriction.parse("+-" + "*-"))  # the fixed bit of the row is 1
    1

    Mukherjee 2020, Claim 2, which leaves the mask out.
    """
    layout = AndreevLayout(restriction.n_inputs)
    mask = 0
    for i in range(layout.address_bits):
        row = [restriction.values[k] for k in layout.row(i)]
        if row.count(None) != 1:
            raise ValueError(f"row {i} of the matrix must have one free bit; it has {row.count(None)}.")
        mask = 2 * mask + row.count(-1) % 2
    return mask


@dataclass(frozen=True, repr=False)
class OrderOfGrowth:
    """A bound up to constants that its source does not name.

    Attributes:
        value: The expression, with 1 in place of the constants.
        formula: The expression, in words and symbols.

    Example:
        >>> OrderOfGrowth(8.0, "n log n")
        OrderOfGrowth(8: n log n, with 1 for constants that the source leaves open)
    """

    value: float
    formula: str

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        told = f"{self.value:g}: {self.formula}, with 1 for constants that the source leaves open"
        return f"OrderOfGrowth({told})"


def agreement_tail(n: int, epsilon: float, *, log2_functions: float = 0.0) -> float:
    r"""Bound the probability that a random function agrees with one of N fixed ones by luck.

    .. math:: P\bigl[\exists i :\ \Pr_x[f_i(x) = g(x)] \ge \tfrac12 + \epsilon\bigr]
        \le N e^{-2^{n+1} \epsilon^2}

    Proved: g is uniform over the Boolean functions of n bits.

    Args:
        n: Number of bits.
        epsilon: Advantage over a coin.
        log2_functions: :math:`\log_2 N`.

    Returns:
        The bound, at most 1.

    Example:
        >>> agreement_tail(8, 0.0), agreement_tail(8, 0.25) < 1e-13
        (1.0, True)

    Mukherjee 2020, Claim 1 and (2.10).
    """
    if n < 1 or not 0 <= epsilon <= 0.5 or not log2_functions >= 0:
        raise ValueError(
            f"n >= 1, 0 <= epsilon <= 1/2 and log2_functions >= 0 are needed; got n = {n}, "
            f"epsilon = {epsilon}, log2_functions = {log2_functions}."
        )
    # Beyond the range of float64 the exponent is minus infinity for all that can be written down.
    power = math.ldexp(epsilon**2, n + 1) if n < _MAX_POWER or not epsilon else math.inf
    return math.exp(min(0.0, log2_functions * math.log(2) - power))


def ltf_of_relu_functions(n: int, gates: int) -> OrderOfGrowth:
    r"""Return the shape of :math:`\log_2` of the number of functions that w ReLU gates give.

    .. math:: \log_2 N = O(q^2 \log_2 q), \qquad q = w n + 2 w + 2

    for threshold gates over w ReLU gates on n bits, with direct wires.

    Example:
        >>> ltf_of_relu_functions(4, 1).value  # q = 8
        192.0

    Mukherjee 2020, section 2.6 (from Maass 1997).
    """
    at_least(1, n=n)
    at_least(0, gates=gates)
    q = gates * n + 2 * gates + 2
    return OrderOfGrowth(
        q * q * math.log2(q), "log2 of the number of functions: q^2 log2(q), q = wn + 2w + 2"
    )


def advantage_threshold(n: float, delta: float, *, variant: Variant = "corrected") -> OrderOfGrowth:
    r"""Return the advantage from which on the size bound against Andreev's function holds.

    .. math:: \epsilon > \sqrt{2 \log_2^{2 / (1 - 2 \delta)}(n / 2) / n}

    Args:
        n: Number of bits, more than 2.
        delta: Between 0 and 1/2.
        variant: ``"as_printed"`` has the exponent :math:`2 / (2 - \delta)` and the argument n; the proof
            has :math:`2 + \theta` with :math:`\delta = \theta / (2 (2 + \theta))`, and n / 2.

    Example:
        Exactly one gate is what the proof allows at the threshold:

        >>> epsilon = advantage_threshold(2**20, 0.25).value
        >>> round(surviving_gates(2**20, epsilon, 0.25).value, 9)
        1.0

    Mukherjee 2020, Theorem 2.5.4, corrected.
    """
    _require(n, delta)
    if _printed(variant):
        value, formula = 2 * math.log2(n) ** (2 / (2 - delta)) / n, "log2(n)^(2/(2-delta))"
    else:
        value, formula = 2 * math.log2(n / 2) ** (2 / (1 - 2 * delta)) / n, "log2(n/2)^(2/(1-2 delta))"
    return OrderOfGrowth(math.sqrt(value), f"sqrt(2 {formula} / n)")


def surviving_gates(n: float, epsilon: float, delta: float) -> OrderOfGrowth:
    r"""Return how many gates may survive the restriction, :math:`s(n, \epsilon)` of the proof.

    .. math:: s = \frac{(\epsilon^2 n / 2)^{(1 - 2 \delta) / 2}}{\log_2(n / 2)}

    With so few gates a threshold of ReLUs cannot agree with a random function of
    :math:`\log_2(n/2)` bits on a share of :math:`1/2 + \epsilon/3`.

    >>> round(surviving_gates(512, 0.5, 0.25).value, 4)
    0.3536

    Mukherjee 2020, (2.11).
    """
    _require(n, delta, epsilon)
    value = (epsilon**2 * n / 2) ** ((1 - 2 * delta) / 2) / math.log2(n / 2)
    return OrderOfGrowth(value, "(eps^2 n / 2)^((1 - 2 delta)/2) / log2(n/2)")


def andreev_agreement(n: float, epsilon: float, delta: float, gates: float) -> OrderOfGrowth:
    r"""Return the upper bound on how often a circuit with w gates agrees with Andreev's function.

    .. math:: \tfrac12 + \tfrac{2 \epsilon}{3} + \frac{w (1 - \eta)}{s(n, \epsilon)},
        \qquad 1 - \eta = \log_2 n / \sqrt n .

    >>> round(andreev_agreement(512, 0.25, 0.25, gates=0).value, 4)
    0.6667

    Mukherjee 2020, Claim 3.
    """
    share = math.log2(n) / math.sqrt(n)
    value = 0.5 + 2 * epsilon / 3 + gates * share / surviving_gates(n, epsilon, delta).value
    return OrderOfGrowth(value, "1/2 + 2 eps/3 + w log2(n) / (sqrt(n) s)")


def andreev_size_in_proof(
    n: float, epsilon: float, delta: float, *, variant: Variant = "corrected"
) -> OrderOfGrowth:
    r"""Return the number of gates up to which agreement stays below :math:`1/2 + \epsilon`.

    .. math:: w = \frac{\epsilon}{3} \frac{s(n, \epsilon)}{1 - \eta}
        = \frac{\epsilon^{2 (1 - \delta)} n^{1 - \delta}}{3 \cdot 2^{1/2 - \delta} \log_2(n) \log_2(n/2)}

    Args:
        n: Number of bits.
        epsilon: Advantage over a coin.
        delta: Between 0 and 1/2.
        variant: ``"as_printed"`` has :math:`\log_2(n/2)` in the numerator.

    >>> printed = andreev_size_in_proof(512, 0.5, 0.25, variant="as_printed").value
    >>> round(printed / andreev_size_in_proof(512, 0.5, 0.25).value, 6)
    64.0

    Mukherjee 2020, end of section 2.6, corrected.
    """
    _require(n, delta, epsilon)
    scale = andreev_size(n, epsilon, delta).value / (3 * 2 ** (0.5 - delta))
    k = math.log2(n / 2)
    value = scale * (k if _printed(variant) else 1 / k) / math.log2(n)
    place = "* log2(n/2) / log2(n)" if _printed(variant) else "/ (log2(n) log2(n/2))"
    return OrderOfGrowth(value, f"(eps^2 n)^(1-delta) / (3 2^(1/2-delta)) {place}")


def andreev_size(n: float, epsilon: float, delta: float) -> OrderOfGrowth:
    r"""Return the size that agreement :math:`1/2 + \epsilon` with Andreev's function needs.

    .. math:: \Omega\bigl(\epsilon^{2 (1 - \delta)} n^{1 - \delta}\bigr)

    for n large enough (how large is not said) and :math:`\epsilon` above :func:`advantage_threshold`.

    Example:
        >>> round(andreev_size(10**6, 0.5, 0.25).value)
        11180

    Mukherjee 2020, Theorem 2.5.4.
    """
    _require(n, delta, epsilon)
    return OrderOfGrowth((epsilon**2 * n) ** (1 - delta), "eps^(2(1-delta)) n^(1-delta), for large n")


def _require(n: float, delta: float, epsilon: float = 0.5) -> None:
    if not (n > 2 and math.isfinite(n)) or not 0 < delta < 0.5 or not 0 < epsilon <= 0.5:
        raise ValueError(
            f"n > 2, 0 < delta < 1/2 and 0 < epsilon <= 1/2 are needed; got n = {n}, delta = {delta}, "
            f"epsilon = {epsilon}."
        )


def _printed(variant: str) -> bool:
    return choice("variant", variant, ("corrected", "as_printed")) == "as_printed"
