r"""Restrictions: some inputs fixed, the others free; what is left of a network, which gates collapse.

A random restriction cuts the inputs into equal parts, leaves one input of each part free and fixes all
others by fair coins. Most gates over many inputs collapse under it: their argument no longer changes
sign. A ReLU gate is then zero or linear, and can be removed if wires may lead from the inputs directly
to the output; a threshold gate is constant. How many collapse, :func:`collapse_rate` measures.

Mukherjee 2020, section 2.6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array, dense
from pindown.circuits.boolean.cube import LinearForm, Signs, sign_rows
from pindown.circuits.tuning import CHUNK_NUMBERS, MAX_RESTRICTIONS
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork
from pindown.validation import choice, integer, number

Form = TypeVar("Form", bound=LinearForm)
Network = TypeVar("Network", ReluNetwork, RationalNetwork)
GateKind: TypeAlias = Literal["relu", "threshold"]
Fate: TypeAlias = Literal["zero", "linear", "plus", "minus", "active"]


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


def gate_fate(form: LinearForm, *, gate: GateKind = "relu") -> Fate:
    """Tell what a gate does on the cube, decided exactly.

    Args:
        form: The gate's argument, restricted or not.
        gate: ``"relu"`` is ``"zero"`` if the argument is never positive, ``"linear"`` if it is never
            negative; ``"threshold"`` is ``"minus"`` if it is always negative, ``"plus"`` if never.

    Returns:
        The fate, ``"active"`` if the gate is none of these.

    Example:
        >>> gate_fate(LinearForm.of([1, 1], 2)), gate_fate(LinearForm.of([1, 1], 1))
        ('linear', 'active')
        >>> gate_fate(LinearForm.of([1, 1], -2)), gate_fate(LinearForm.of([1, 1], -2), gate="threshold")
        ('zero', 'active')

    Mukherjee 2020, section 2.6, where the two kinds are called identical: they differ if the largest
    value is zero, as in the example.
    """
    choice("gate", gate, ("relu", "threshold"))
    low, high = form.range()
    if gate == "relu":
        return "zero" if high <= 0 else "linear" if low >= 0 else "active"
    return "plus" if low >= 0 else "minus" if high < 0 else "active"


@dataclass(frozen=True)
class CollapseRate:
    """How often a gate survives a random restriction: an estimate from samples.

    Attributes:
        surviving: Share of restrictions that leave the gate active.
        standard_error: Standard error of that share.
        n: Number of inputs.
        n_parts: Number of parts, that is, of free inputs.
        samples: Restrictions drawn.
    """

    surviving: float
    standard_error: float
    n: int
    n_parts: int
    samples: int

    @property
    def shape(self) -> float:
        r"""The rate :math:`|P| / \sqrt n` of the lemma, with 1 in place of its unnamed constant."""
        return self.n_parts / math.sqrt(self.n)

    def __repr__(self) -> str:
        return (
            f"CollapseRate({self.surviving:.4f} +- {self.standard_error:.4f} of gates on {self.n} "
            f"inputs survive with {self.n_parts} free; estimate from {self.samples:,} restrictions)"
        )


def collapse_rate(
    weights: ArrayLike | None,
    n_parts: int,
    *,
    n: int | None = None,
    bias: float = 0.0,
    gate: GateKind = "relu",
    samples: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> CollapseRate:
    r"""Estimate the probability that a gate survives a random restriction.

    For a threshold gate it is :math:`O(|P| / \sqrt n)`, whatever the weights.

    Args:
        weights: The gate's n weights, or None for fresh Gaussian weights in every sample.
        n_parts: :math:`|P|`, the number of equal parts with one free input each.
        n: Number of inputs, if no weights are given.
        bias: The gate's bias. At 0 the threshold is the mean of the argument.
        gate: Kind of gate; matters only for ties.
        samples: Number of restrictions.
        seed: Seed, or a generator.

    Returns:
        The estimate with its standard error.

    Example:
        A gate that sees one input only survives if that input stays free, one time out of four:

        >>> rate = collapse_rate([1, 0, 0, 0, 0, 0, 0, 0], 2, samples=4000)
        >>> abs(rate.surviving - 0.25) < 4 * rate.standard_error
        True

    Mukherjee 2020, Lemma 2.6.1 (from Kane and Williams 2016).
    """
    choice("gate", gate, ("relu", "threshold"))
    given = None if weights is None else np.asarray(weights, dtype=np.float64)
    if given is not None and (given.ndim != 1 or not np.isfinite(given).all()):
        raise ValueError("weights must be one row of finite numbers.")
    size = n if given is None else len(given)
    if size is None:
        raise ValueError("give the weights, or n for Gaussian weights.")
    if n is not None and n != size:
        raise ValueError(f"n is {n}, but there are {size} weights.")
    bias, samples = number("bias", bias), integer("samples", samples, least=2)
    equal_parts(size, n_parts)
    rng = np.random.default_rng(seed)
    chunk = max(1, CHUNK_NUMBERS // size)
    alive = 0
    for start in range(0, samples, chunk):
        rows = min(chunk, samples - start)
        drawn = rng.standard_normal((rows, size)) if given is None else np.tile(given, (rows, 1))
        alive += _survivors(drawn.reshape(rows, n_parts, -1), bias, gate, rng)
    share = alive / samples
    error = math.sqrt(max(share * (1 - share), 1 / samples) / samples)  # not zero after no hit at all
    return CollapseRate(share, error, size, n_parts, samples)


def _survivors(weights: Array, bias: float, gate: GateKind, rng: np.random.Generator) -> int:
    """Count the rows (rows, parts, size) whose gate stays active under a fresh restriction each."""
    free = rng.integers(weights.shape[2], size=(*weights.shape[:2], 1))
    reach = np.abs(np.take_along_axis(weights, free, axis=2)).sum(axis=(1, 2))
    signed = weights * rng.choice(np.array([-1.0, 1.0]), size=weights.shape)
    np.put_along_axis(signed, free, 0.0, axis=2)
    fixed = signed.sum(axis=(1, 2)) + bias
    low, high = fixed - reach, fixed + reach
    active = (low < 0) & ((high > 0) if gate == "relu" else (high >= 0))
    return int(active.sum())


def collapse_probability(form: LinearForm, n_parts: int, *, gate: GateKind = "relu") -> Fraction:
    """Return the exact probability that a gate survives, by going through all restrictions.

    There are (n / parts)^parts choices of free inputs with 2^(n - parts) signs each: for small n only.

    >>> collapse_probability(LinearForm.of([1, 0, 0, 0]), 2)
    Fraction(1, 2)
    """
    n = form.n_inputs
    parts = equal_parts(n, n_parts)
    total = (n // n_parts) ** n_parts * 2 ** (n - n_parts)
    if total > MAX_RESTRICTIONS:
        raise ValueError(f"there are {total:,} restrictions, more than {MAX_RESTRICTIONS:,}: estimate.")
    alive = 0
    for free in product(*parts):
        fixed = [i for i in range(n) if i not in free]
        for signs in product((-1, 1), repeat=len(fixed)):
            at = dict(zip(fixed, signs, strict=True))
            rho = Restriction(tuple(at.get(i) for i in range(n)))
            alive += gate_fate(restrict_form(form, rho), gate=gate) == "active"
    return Fraction(alive, total)
