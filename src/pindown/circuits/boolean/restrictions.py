r"""Restrictions: some inputs fixed, the others free, and what is left of a form or a network.

A random restriction cuts the inputs into equal parts, leaves one input of each part free and fixes all
others by fair coins. Most gates over many inputs collapse under it: their argument no longer changes
sign. How many, :func:`pindown.circuits.boolean.collapse.collapse_rate` measures.

Mukherjee 2020, section 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import dense
from pindown.circuits.boolean.cube import Signs, sign_rows
from pindown.circuits.boolean.linear_form import LinearForm
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork

Form = TypeVar("Form", bound=LinearForm)


@dataclass(frozen=True, repr=False)
class Restriction:
    """Which inputs are fixed, and to which sign.

    Attributes:
        values: +1 or -1 for a fixed input, None for a free one.

    Example:
        >>> rho = Restriction.parse("+*-*")
        >>> rho.free
        (1, 3)
        >>> rho.complete([[-1, -1], [-1, 1]]).tolist()
        [[1, -1, -1, -1], [1, -1, -1, 1]]
    """

    values: tuple[int | None, ...]

    def __post_init__(self) -> None:
        if not self.values or any(value not in (-1, 1, None) for value in self.values):
            raise ValueError(f"a restriction holds +1, -1 or None for each input; got {self.values}.")

    @classmethod
    def parse(cls, text: str) -> Restriction:
        """Read ``+`` and ``-`` for fixed inputs and ``*`` for free ones."""
        letters = {"+": 1, "-": -1, "*": None}
        if not text or set(text) - set(letters):
            raise ValueError(f"a restriction is written with +, - and *; got {text!r}.")
        return cls(tuple(letters[letter] for letter in text))

    @property
    def n_inputs(self) -> int:
        """Number of inputs, fixed and free."""
        return len(self.values)

    @property
    def free(self) -> tuple[int, ...]:
        """The free inputs, ascending."""
        return tuple(i for i, value in enumerate(self.values) if value is None)

    def complete(self, Y: ArrayLike) -> Signs:
        """Return full inputs from the free ones: (N, free) -> (N, n), (free,) -> (n,)."""
        rows, single = sign_rows(Y)
        if rows.shape[1] != len(self.free):
            raise ValueError(f"{len(self.free)} inputs are free; got {rows.shape[1]} values.")
        X = np.tile(np.array([value or 0 for value in self.values], dtype=np.int8), (len(rows), 1))
        X[:, list(self.free)] = rows
        return X[0] if single else X

    def __repr__(self) -> str:
        letters = {1: "+", -1: "-", None: "*"}
        return f"Restriction('{''.join(letters[value] for value in self.values)}')"


def random_restriction(
    n: int, n_parts: int, rng: np.random.Generator, *, parts: Iterable[Sequence[int]] | None = None
) -> Restriction:
    """Draw a restriction that leaves one input of each part free.

    Args:
        n: Number of inputs.
        n_parts: Number of parts; must divide n. Parts are runs of consecutive inputs unless given.
        rng: Source of randomness.
        parts: The parts themselves: disjoint, of equal size, together all inputs.

    Example:
        >>> len(random_restriction(12, 3, np.random.default_rng(0)).free)
        3

    Mukherjee 2020, Lemma 2.6.1 (from Kane and Williams 2016).
    """
    cells = equal_parts(n, n_parts) if parts is None else [list(part) for part in parts]
    if sorted(i for part in cells for i in part) != list(range(n)) or len(cells) != n_parts:
        raise ValueError(f"the {n_parts} parts must hold every input from 0 to {n - 1} once.")
    if len({len(part) for part in cells}) != 1:
        raise ValueError(f"parts must have equal sizes; got {[len(part) for part in cells]}.")
    values: list[int | None] = rng.choice([-1, 1], size=n).tolist()
    for part in cells:
        values[part[rng.integers(len(part))]] = None
    return Restriction(tuple(values))


def equal_parts(n: int, n_parts: int) -> list[list[int]]:
    """Cut the numbers from 0 to n - 1 into runs of equal length.

    >>> equal_parts(6, 2)
    [[0, 1, 2], [3, 4, 5]]
    """
    if n_parts < 1 or n < 1 or n % n_parts:
        raise ValueError(f"the number of equal parts must divide n; got n = {n}, {n_parts} parts.")
    return np.arange(n).reshape(n_parts, -1).tolist()


def restrict_form(form: Form, restriction: Restriction) -> Form:
    """Return a gate's form, or a threshold gate, on the free inputs alone, without rounding.

    >>> restrict_form(LinearForm.of([1, 2, 3]), Restriction.parse("+*-"))
    LinearForm(weights=(Fraction(2, 1),), bias=Fraction(-2, 1))
    """
    _require_same_inputs(form.n_inputs, restriction)
    pairs = zip(form.weights, restriction.values, strict=True)
    fixed = sum((w * value for w, value in pairs if value is not None), Fraction(0))
    return type(form)(tuple(form.weights[i] for i in restriction.free), form.bias + fixed)


Network = TypeVar("Network", ReluNetwork, RationalNetwork)


def restrict_network(net: Network, restriction: Restriction) -> Network:
    """Return the network on the free inputs alone; only its first affine map changes.

    Args:
        net: A network; a rational one is restricted without rounding.
        restriction: At least one input must be free.

    Returns:
        A network of the same kind, depth and number of gates.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0, 1.0]], [0]), ([[1.0]], [0])])
        >>> restrict_network(net, Restriction.parse("+*"))([-1.0]).item()
        0.0
    """
    weight, bias = net.layers[0]
    W = dense(weight) if isinstance(net, ReluNetwork) else weight
    _require_same_inputs(W.shape[1], restriction)
    if not restriction.free:
        raise ValueError("a network needs an input; the restriction leaves none free.")
    fixed: NDArray[np.int64] = np.array([value or 0 for value in restriction.values])
    first = W[:, list(restriction.free)], bias + W @ fixed
    return type(net).from_layers([first, *net.layers[1:]])


def _require_same_inputs(n: int, restriction: Restriction) -> None:
    if n != restriction.n_inputs:
        raise ValueError(f"the restriction is about {restriction.n_inputs} inputs; there are {n}.")
