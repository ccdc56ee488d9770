r"""Is the network that was read the function of the model it was read from?

Rules that rewrite operations as ReLUs can be wrong, and merging affine maps can lose digits. So before a
network is handed out, it is compared with an evaluation of the original that shares no code with the
rules, at a few inputs of sizes from tiny to huge. What rounding may explain is measured, not assumed:
everything on the way, in the original and in the network, is changed by a relative :math:`2^{-32}`, and
the two may differ by no more than a small multiple of what that does to the outputs. Small networks are
also compared in rational arithmetic, where nothing rounds and nothing needs to be explained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, stored_entries
from pindown.errors import UnsupportedModelError
from pindown.model.limits import AGREEMENT_SIZES, ALLOWED_SPREADS, MANY_PARAMETERS
from pindown.model.operations.operation import as_fractions
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.model.graph import Model

# Outputs at one flat input; the second argument changes numbers on the way, None nothing.
Reference: TypeAlias = Callable[[Array, Any], Array]

# At inputs from 1 to this size no digits of the outputs may be lost beyond a relative 2**-25.
_ORDINARY = 1e4
_MAX_LOSS = 2.0**-25
_SHAKY = (
    "Changing the numbers inside the model by a relative 2e-10 changes its outputs altogether: what is "
    "said holds for the layers as they were rounded to float64, and perhaps for no other form of it."
)
_RELATIVE = 2.0**-32  # change of everything on the way
_COARSER = 2.0**13  # float32 instead of float64, where 2**-32 left room already
_VANISHING = 1e-280  # products of tiny weights lose digits without any cancellation
_MANY = 100_000  # entries beyond which noise is drawn for rows and columns only
_CHUNK_ENTRIES = 2_000_000  # of |W| that are held at once
# A model is compared at inputs of these sizes: smooth functions of huge numbers say little. It is large
# if it has many parameters, or this many times as many multiply-adds.
_MODEL_SIZES = (1.0, 10.0, 1e-3)
_MACS_OF_MANY = 100
# Of the largest output: a GELU near zero has few digits, and not everywhere the same.
_SMOOTH_LOSS = 2.0**-40
_EXACT_LOSS = Fraction(1, 2**20)


class DisagreementError(UnsupportedModelError):
    """A network does not compute what its original computes.

    Attributes:
        row: The flat input that shows it.
    """

    def __init__(self, message: str, row: Any) -> None:
        super().__init__(message)
        self.row = row


def noise(seed: int, relative: float = _RELATIVE) -> Callable[[Any], Any]:
    """Return a function that changes float numbers by up to a relative amount and nothing else."""
    rng = np.random.default_rng(seed)

    def factors(shape: Any) -> Any:
        return 1.0 + relative * rng.uniform(-1.0, 1.0, shape)

    def change(values: Any) -> Any:
        if values.dtype.kind != "f":
            return values
        if values.size <= _MANY or values.ndim < 2:
            return values * factors(values.shape)
        # For every row and column is enough: a random number for each entry takes longer than its use.
        rows = values * factors((len(values), *[1] * (values.ndim - 1)))
        return np.multiply(rows, factors(values.shape[-1]), out=rows)

    return change


def sample_rows(in_features: int) -> Array:
    """Return inputs of all sizes, the same in every run."""
    rng = np.random.default_rng(0)
    return np.stack([size * rng.normal(size=in_features) for size in AGREEMENT_SIZES])


def require_agreement(
    net: ReluNetwork, reference: Reference, *, activated: bool = False, single: bool = False
) -> tuple[str, ...]:
    """Refuse a network that differs from its original by more than rounding explains.

    Args:
        net: What was read.
        reference: The original, evaluated independently.
        activated: Whether the original applies the output activation that the network only remembers.
        single: Whether the original computes in float32.

    Returns:
        What has to be said of the network: whether rounding explains everything.

    Raises:
        DisagreementError: If they differ, or no input leads to finite outputs.
    """
    sizes = AGREEMENT_SIZES if net.n_parameters <= MANY_PARAMETERS else AGREEMENT_SIZES[:2]
    rows = sample_rows(net.in_features)[: len(sizes)]
    with np.errstate(all="ignore"):
        last = _activation(net.output_activation if activated else None)
        ours = last(_outputs(net, rows, None))
        changed = [last(_outputs(net, rows, np.random.default_rng(seed))) for seed in (1, 2)]
        return _compared(rows, sizes, ours, changed, reference, single=single)


def require_model_agreement(
    model: Model, reference: Reference, *, single: bool = False, rows: Array | None = None
) -> tuple[str, ...]:
    """Refuse a model that differs from its original by more than rounding explains.

    Args:
        model: What was read.
        reference: The original, evaluated independently.
        single: Whether the original computes in float32.
        rows: Inputs of ordinary sizes at which the two are compared; if they are left out, random ones
            of several sizes, or one if the model is large.

    Returns:
        What has to be said of the model: whether rounding explains everything.

    Raises:
        DisagreementError: If they differ, or no input leads to finite outputs.
    """
    large = (
        max(model.n_parameters * _MACS_OF_MANY, model.multiply_adds) > MANY_PARAMETERS * _MACS_OF_MANY
    )
    sizes: Sequence[float] = (1.0,) if large else _MODEL_SIZES
    if rows is None:
        rng = np.random.default_rng(0)
        rows = np.stack([size * rng.normal(size=model.in_features) for size in sizes])
    else:
        sizes = (1.0,) * len(rows)
    with np.errstate(all="ignore"):

        def outputs(change: Any) -> Array:
            return np.concatenate([model.evaluate(row[None], change).reshape(1, -1) for row in rows])

        # Of a large model rounding is allowed for, not measured: that would take as long as reading it.
        changed = [] if large else [outputs(noise(seed)) for seed in (1, 2)]
        seeds, floor = ((), _MAX_LOSS) if large else ((3, 4), _SMOOTH_LOSS)
        return _compared(
            rows, sizes, outputs(None), changed, reference, seeds, single=single, floor=floor
        )


def _compared(
    rows: Array,
    sizes: Sequence[float],
    ours: Array,
    changed: Sequence[Array],
    reference: Reference,
    seeds: Sequence[int] = (3, 4),
    *,
    single: bool,
    floor: float = 0.0,
) -> tuple[str, ...]:
    """Compare outputs with those of the original, allowing what changes on either way do to them."""
    coarser = _COARSER if single else 1.0
    originals = [reference(row, None) for row in rows]
    ordinary = [np.abs(y) for y, size in zip(originals, sizes, strict=True) if size <= _ORDINARY]
    scale = float(np.nanmax(ordinary, initial=0.0))
    compared, shaky = 0, False
    for i, (row, theirs) in enumerate(zip(rows, originals, strict=True)):
        if theirs.size != ours.shape[1]:
            counts = f"{ours.shape[1]} outputs, and {theirs.size} in the original"
            raise DisagreementError(f"the layers that were read have {counts}.", row)
        none = np.zeros(theirs.size)
        spread = np.max(
            [none, *(np.abs(reference(row, noise(seed)) - theirs) for seed in seeds)], axis=0
        )
        ours_spread = np.max([none, *(np.abs(other[i] - ours[i]) for other in changed)], axis=0)
        if 1 <= sizes[i] <= _ORDINARY:
            shaky |= bool((spread > scale).any())
            if scale > 0:  # here no digits of the outputs may be lost
                ours_spread = np.minimum(ours_spread, _MAX_LOSS * scale)
        spread = np.maximum(spread, ours_spread)
        sound = np.isfinite(theirs) & np.isfinite(ours[i]) & np.isfinite(spread)
        compared += int(sound.any())
        # Far out one form may overflow alone, in float32 sooner; a model at ordinary inputs may not.
        alone = (np.isfinite(theirs) != np.isfinite(ours[i])) & (floor > 0 and not single)
        gap = np.where(sound, np.abs(ours[i] - theirs), np.where(alone, np.inf, 0.0))
        spread = ALLOWED_SPREADS * np.where(sound, spread, 0.0)
        excess = gap - coarser * (spread + (floor * scale if floor else 0.0)) - _VANISHING
        _require(excess <= 0, ours[i], theirs, excess, row)
    if not compared:
        raise DisagreementError("the model overflows float64 at all inputs that were tried.", rows[0])
    return (_SHAKY,) if shaky else ()


def require_exact_agreement(net: ReluNetwork, reference: Callable[[Any], Any]) -> None:
    """Refuse a network that, in rational arithmetic, differs from its original visibly.

    Args:
        net: What was read.
        reference: From a row of ``Fraction`` to the outputs in rational arithmetic.

    Raises:
        DisagreementError: If an output differs by more than a relative 2**-20.
    """
    for row in sample_rows(net.in_features)[:1]:
        # Few digits keep the rationals short.
        x = as_fractions(np.where(np.abs(row) < 1 / 256, 1.0, np.round(row * 256) / 256))
        ours, theirs = _exact_outputs(net, x), reference(x)
        excess = np.abs(ours - theirs) - _EXACT_LOSS * np.abs(theirs)
        _require(excess <= 0, ours, theirs, excess, x)


def _exact_outputs(net: ReluNetwork, x: Any) -> Any:
    """Evaluate in rational arithmetic; only weights that are not zero are multiplied."""
    values = x
    for k, (weight, bias) in enumerate(net.layers):
        W = sp.csr_array(weight)
        made: Any = as_fractions(bias)
        for i, (start, stop) in enumerate(pairwise(W.indptr.tolist())):
            row = zip(W.indices[start:stop].tolist(), W.data[start:stop].tolist(), strict=True)
            made[i] += sum((Fraction(w) * values[j] for j, w in row if w and values[j]), Fraction(0))
            if k + 1 < net.depth:
                made[i] = max(made[i], Fraction(0))
        values = made
    return values


def _require(fine: Any, ours: Any, theirs: Any, excess: Any, row: Any) -> None:
    if fine.all():
        return
    k = int(np.argmax(excess))
    size = float(np.abs(row).max())
    raise DisagreementError(
        f"output {k} is {float(ours[k]):.9g} in the layers that were read and {float(theirs[k]):.9g} in "
        f"the original, at an input of size {size:.1e}; no proof may rest on such layers.",
        row,
    )


def _activation(name: str | None) -> Callable[[Array], Array]:
    if name is None:
        return lambda z: z
    if name == "sigmoid":
        return lambda z: 1.0 / (1.0 + np.exp(-z))

    def log_softmax(z: Array) -> Array:
        z = z - z.max(axis=1, keepdims=True)
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))

    return log_softmax if name == "log_softmax" else lambda z: np.exp(log_softmax(z))


def _outputs(net: ReluNetwork, rows: Array, rng: np.random.Generator | None) -> Array:
    """Evaluate; with ``rng``, all sums are off by 2**-32 of what they add up."""
    a = rows
    for k, layer in enumerate(net.layers):
        z = layer(a)
        if rng is not None:
            z = z + _RELATIVE * rng.uniform(-1.0, 1.0, z.shape) * _sizes(layer, np.abs(a))
        a = np.maximum(z, 0.0) if k + 1 < net.depth else z
    return a


def _sizes(layer: Affine, a: Array) -> Array:
    """Return ``|W| a + |b|`` for rows a >= 0; a copy of all of W could be too much memory."""
    W = layer.weight
    step = max(1, _CHUNK_ENTRIES * W.shape[0] // max(1, stored_entries(W)))
    parts = []
    for start in range(0, W.shape[0], step):
        part = W[start : start + step]
        size = abs(part)
        parts.append((size @ a.T).T if sp.issparse(size) else a @ size.T)
    return np.concatenate(parts, axis=1) + np.abs(layer.bias)
