r"""When a gate becomes trivial under a restriction, and how often that happens.

A ReLU gate whose argument does not change sign on the cube is zero or linear: it can be removed, if
wires may lead from the inputs directly to the output. A threshold gate is constant.

Mukherjee 2020, section 2.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.circuits.boolean.linear_form import LinearForm
from pindown.circuits.boolean.restrictions import Restriction, equal_parts, restrict_form

GateKind: TypeAlias = Literal["relu", "threshold"]
Fate: TypeAlias = Literal["zero", "linear", "plus", "minus", "active"]

# Numbers drawn at once in a simulation: 64 MB.
_CHUNK_NUMBERS = 2**23
_MAX_RESTRICTIONS = 200_000  # some seconds of exact arithmetic


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
    _require_kind(gate)
    low, high = form.range()
    if gate == "relu":
        return "zero" if high <= 0 else "linear" if low >= 0 else "active"
    return "plus" if low >= 0 else "minus" if high < 0 else "active"


@dataclass(frozen=True)
class CollapseRate:
    """How often a gate survives a random restriction: an estimate from samples.

    Attributes:
        surviving: Share of restrictions that leave the gate active.
        standard_error: Of that share.
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
    _require_kind(gate)
    given = None if weights is None else np.asarray(weights, dtype=np.float64)
    if given is not None and (given.ndim != 1 or not np.isfinite(given).all()):
        raise ValueError("weights must be one row of finite numbers.")
    size = n if given is None else len(given)
    if size is None:
        raise ValueError("give the weights, or n for Gaussian weights.")
    if n is not None and n != size:
        raise ValueError(f"n is {n}, but there are {size} weights.")
    if not math.isfinite(bias):
        raise ValueError(f"the bias must be finite; got {bias}.")
    if samples < 2:
        raise ValueError(f"an estimate needs at least 2 samples; got {samples}.")
    equal_parts(size, n_parts)
    rng = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_NUMBERS // size)
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
    if total > _MAX_RESTRICTIONS:
        raise ValueError(f"there are {total:,} restrictions, more than {_MAX_RESTRICTIONS:,}: estimate.")
    alive = 0
    for free in product(*parts):
        fixed = [i for i in range(n) if i not in free]
        for signs in product((-1, 1), repeat=len(fixed)):
            at = dict(zip(fixed, signs, strict=True))
            rho = Restriction(tuple(at.get(i) for i in range(n)))
            alive += gate_fate(restrict_form(form, rho), gate=gate) == "active"
    return Fraction(alive, total)


def _require_kind(gate: str) -> None:
    if gate not in ("relu", "threshold"):
        raise ValueError(f"gate must be 'relu' or 'threshold'; got {gate!r}.")
