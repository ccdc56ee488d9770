r"""Andreev's function: a table, and a matrix whose row parities say which entry of the table to read.

.. math:: A_n(x, a) = x_{\mathrm{bin}(z)}, \qquad z_i = \bigoplus_j a_{ij},
    \qquad x \in \{0,1\}^{\lfloor n/2 \rfloor},\ a \in \{0,1\}^{L \times \lfloor n / (2 L) \rfloor},
    \ L = \lfloor \log_2 (n/2) \rfloor .

Entries of the table are counted from 0, and the first row gives the most significant bit of the address.
The inputs are the table, then the matrix row by row; bits that are left over, and entries of the table
from :math:`2^L` on, are ignored.

Mukherjee 2020, Definition 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.circuits.boolean.cube import Alphabet, Signs, sign_rows, to_bits, to_pm
from pindown.circuits.boolean.restrictions import Restriction
from pindown.validation import at_least


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
