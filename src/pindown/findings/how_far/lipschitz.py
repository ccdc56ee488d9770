"""How steep the network can be, anywhere and on a box whose cells are known; norms of its layers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix
from pindown.deadline import OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import Mark, Scale, StackedBars, drawable
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import margins
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    LAYER_NORM_SHARE,
    LIPSCHITZ_SECONDS_PER_PARAMETER,
    LIPSCHITZ_SHARE,
    MAX_INPUTS_FOR_STEEPEST_CELL,
    SECONDS_PER_PARAMETER,
    SLOPE_STEPS,
)
from pindown.findings.which_function._cells import Regions, known_regions, regions
from pindown.findings.wording import at_least, at_most, count, number_text, percent
from pindown.geometry.facts.lipschitz import LipschitzConstant, lipschitz_constant
from pindown.model.graph import Model
from pindown.model.operations.convolution import Convolution, TransposedConvolution
from pindown.model.operations.dense import Dense
from pindown.network import ReluNetwork
from pindown.relaxation import (
    LipschitzBounds,
    NormBound,
    convolution_norm,
    lipschitz_bounds,
    spectral_norm,
)
from pindown.relaxation.lipschitz import proved_slope
from pindown.rounding import gamma, norm_up

_CONVOLUTIONS = (Convolution, TransposedConvolution)


@question(
    "LIP-01",
    "Lipschitz constant",
    group="how far",
    about="Proved upper bound on how steep the network is anywhere, beside the steepest pair found, and "
    "the input change that the median margin certainly tolerates; on a box whose cells are known, "
    "how steep the steepest of them is.",
    needs=("exact",),
    cost=(0.5, 8),
    place=8,
)
def steepness(subject: Subject) -> Finding:
    """Bound the steepest slope of the network from both sides."""
    data = None if subject.data is None else subject.data.X
    subject.require(LIPSCHITZ_SECONDS_PER_PARAMETER * subject.net.n_parameters)
    norms = subject.layer_norms()
    bounds = lipschitz_bounds(
        subject.net,
        data,
        None if subject.assumed else subject.box,
        budget=LIPSCHITZ_SHARE * subject.turn.left,
        seed=subject.seed,
        layer_norms=norms,
    )
    cell = _steepest_cell(subject)
    if cell is not None and cell.attained > bounds.lower:
        bounds = replace(bounds, lower=cell.attained, witness=None)
    here = None if subject.assumed else cell
    implied = _certified_radius(subject, bounds.upper)
    interval = f"between {at_least(bounds.lower)} (attained) and {at_most(bounds.upper)} (proved)"
    return Finding(
        verdict=interval
        if here is None
        else f"{number_text(here.value)} on {here.place}, the steepest of "
        f"{count(here.n_cells, 'cell')} that float64 shows; over all inputs {interval}",
        number=Quantity(bounds.upper, "exact", label="upper bound", bound="upper")
        if here is None
        else Quantity(here.value, "exact", label=f"on {here.place}"),
        hypotheses=_basis(here),
        reading="An input change of length 1 moves the output by at most the upper number, and between "
        "two points that were found it moves by the lower number times their distance. "
        + _exactly(here)
        + implied.reading,
        scale=_tightness(bounds),
        figure=_picture(bounds),
        table=_bounds_table(bounds, cell),
        sentence=implied.sentence or _sentence(bounds, here),
    )


def _basis(here: _SteepestCell | None) -> tuple[Assumption, ...]:
    proved = Assumption(
        "both ends include rounding and hold over all inputs, in Euclidean norms", "checked"
    )
    if here is None:
        return (proved,)
    return (
        proved,
        Assumption(f"all cells of {here.place} were searched", "checked"),
        Assumption("signs as float64 gives them: cells thinner than about 1e-12 are not seen"),
    )


def _exactly(here: _SteepestCell | None) -> str:
    if here is None:
        return ""
    return (
        f"On {here.place} the number comes from all cells that float64 signs show: the network is "
        "affine on every cell, and the constant is the norm of the steepest map. "
    )


def _tightness(bounds: LipschitzBounds) -> str:
    ratio = bounds.upper / bounds.lower if bounds.lower > 0 else math.inf
    if not math.isfinite(ratio):
        return "No slope was found: the network looks constant near the points tried."
    return (
        f"The two ends differ by a factor of {number_text(round(ratio, 1))}. "
        "A factor of 1 would be exact."
    )


def _sentence(bounds: LipschitzBounds, here: _SteepestCell | None) -> str:
    if here is not None:
        anywhere = f", and by at most {at_most(bounds.upper)} anywhere" * math.isfinite(bounds.upper)
        return (
            f"On {here.place} an input change of length 1 moves the output by up to "
            f"{number_text(here.value)}{anywhere}."
        )
    most = (
        f"An input change of length 1 moves the output by at most {at_most(bounds.upper)}"
        if math.isfinite(bounds.upper)
        else "No bound on its steepness fits into float64"
    )
    if not bounds.lower:
        return f"{most}."
    return f"{most}; the steepest place found reaches {at_least(bounds.lower)}."


class _Implied(NamedTuple):
    """What the bound says about labelled rows, in words."""

    reading: str = ""
    sentence: str = ""


def _certified_radius(subject: Subject, upper: float) -> _Implied:
    r"""Return what :math:`\text{margin} / (\sqrt{2} L)` says at the median margin.

    A difference of two outputs is :math:`\sqrt{2} L`-Lipschitz; a single output is L-Lipschitz.
    """
    if upper == 0.0:
        return _Implied("The network is constant.", "The network is constant.")
    try:
        sample, observed, targets = subject.judged()
    except (NotApplicable, OutOfTime):
        return _Implied()
    if not targets.is_classification:
        return _Implied()
    margin = float(np.median(margins(observed.outputs, targets)))
    if not math.isfinite(upper):
        return _Implied()
    if margin <= 0:
        return _Implied("The median margin is not positive, so no radius follows for half of the rows.")
    factor = 1.0 if subject.net.out_features == 1 else math.sqrt(2.0)
    radius = margin / (factor * upper) * (1.0 - gamma(4))
    with np.errstate(over="ignore"):
        length = float(np.median(np.linalg.norm(sample.X[observed.rows], axis=1)))
    known = 0 < length < math.inf
    beside = f" (about {percent(radius / length)} of the median length of an input)" if known else ""
    fact = f"no input change shorter than {at_least(radius)}{beside} can change the class"
    return _Implied(
        f"At the median margin of {number_text(margin)}, {fact} (margin divided by "
        f"{'the bound' if factor == 1.0 else '√2 times the bound'}).",
        f"At the median margin, {fact}.",
    )


def _picture(bounds: LipschitzBounds) -> Scale | None:
    named = [
        (bounds.lower, "attained"),
        (bounds.averaged, "averaged"),
        (bounds.product, "product"),
        (bounds.absolute, "absolute"),
    ]
    points = tuple(Mark(value, name) for value, name in named if value and math.isfinite(value))
    if bounds.lower <= 0 or len(points) < 2 or not drawable(mark.position for mark in points):
        return None
    return Scale(
        "The Lipschitz constant lies in the shaded interval, from what was attained to the least bound",
        points,
        (bounds.lower, bounds.upper),
        "output change per input change",
    )


def _bounds_table(bounds: LipschitzBounds, cell: _SteepestCell | None) -> Table:
    pair = f"steepest of pairs near {bounds.n_points:,} points"
    rows: list[tuple[Entry, ...]] = [
        ("attained", bounds.lower, None, pair if bounds.witness else "a pair in the steepest cell"),
        ("averaged", None, bounds.averaged, "ReLU is half an identity (Combettes, Pesquet 2020)")
        if bounds.averaged is not None
        else ("averaged", None, None, "merged layers are too large to multiply out here"),
        ("product", None, bounds.product, "product of the layers' spectral norms"),
        ("absolute", None, bounds.absolute, "norm of the product of absolute weights"),
    ]
    if cell is not None:
        how = f"the steepest of {count(cell.n_cells, 'cell')} on {cell.place}"
        rows.append(("on the box", cell.value, cell.value, how))
    return Table(
        "Bounds on the Lipschitz constant", ("bound", "at least", "at most", "how"), tuple(rows)
    )


@question(
    "NORM-01",
    "Layer norms",
    group="how far",
    about="Spectral norm of every layer, of convolutions from their kernels; of matrices also the "
    "Frobenius norm and the stable rank.",
    needs=("graph",),
    cost=(0.2, 0.5),
)
def layer_norms(subject: Subject) -> Finding:
    """Measure how much each affine layer can stretch, and in how many directions it does."""
    if not isinstance(subject.values, ReluNetwork):
        return _norms_of_operations(subject, subject.graph)
    weights = [layer.weight for layer in subject.net.layers]
    subject.require(SECONDS_PER_PARAMETER * subject.net.n_parameters)
    bounds = subject.layer_norms()
    frobenius = [_frobenius(W) for W in weights]
    ranks = [(f / b.value) ** 2 if b.value else 0.0 for f, b in zip(frobenius, bounds, strict=True)]
    tight = all(bound.tight for bound in bounds)
    worst = max(range(len(weights)), key=lambda i: bounds[i].value)
    labels = tuple(f"layer {i}" for i in range(1, len(weights) + 1))
    return Finding(
        verdict=f"spectral norms {'' if tight else 'at most '}{_range([b.value for b in bounds])}; "
        f"stable ranks {'' if tight else 'at least '}{_range(ranks)}",
        number=Quantity(
            bounds[worst].value,
            "exact",
            label=f"largest spectral norm (layer {worst + 1})",
            bound="" if tight else "upper",
        ),
        hypotheses=(
            Assumption("spectral norms are upper bounds, proved by a Cholesky factorisation", "checked")
            if tight
            else Assumption("some norms are only bounded by those of the absolute weights", "checked"),
        ),
        reading="The spectral norm is the most a layer can stretch a vector. The stable rank, "
        "(Frobenius / spectral)², says in how many directions it stretches comparably."
        + ("" if tight else " Where a norm is marked 'at most', the stable rank is a lower bound."),
        scale="A layer of norm 1 lengthens no vector. A stable rank far below the smaller side of the "
        "layer means that a few directions carry it.",
        figure=StackedBars(
            "Spectral norm of each layer", labels, ("norm",), tuple((b.value,) for b in bounds), "norm"
        )
        if drawable(b.value for b in bounds)
        else None,
        table=Table(
            "Norms of the affine layers",
            ("layer", "shape", "spectral", "Frobenius", "stable rank"),
            tuple(
                (
                    i,
                    f"{W.shape[0]:,} × {W.shape[1]:,}",
                    b.value if b.tight else f"at most {at_most(b.value)}",
                    f,
                    r,
                )
                for i, (W, b, f, r) in enumerate(zip(weights, bounds, frobenius, ranks, strict=True), 1)
            ),
        ),
    )


def _norms_of_operations(subject: Subject, model: Model) -> Finding:
    """Bound the norms of dense layers and convolutions, these from their kernels."""
    layers = [node for node in model.nodes if isinstance(node.operation, (Dense, *_CONVOLUTIONS))]
    if not layers:
        raise NotApplicable("it has no dense layer and no convolution")
    bounds = []
    for k, node in enumerate(layers):
        budget = LAYER_NORM_SHARE * subject.turn.left / (len(layers) - k)
        bounds.append(_norm_of(node.operation, budget))
    worst = max(range(len(bounds)), key=lambda i: bounds[i].value)
    return Finding(
        verdict=f"spectral norms at most {_range([b.value for b in bounds])}",
        number=Quantity(
            bounds[worst].value,
            "exact",
            label=f"largest spectral norm (layer {worst + 1})",
            bound="upper",
        ),
        hypotheses=(
            Assumption(
                "norms of convolutions hold for images of any size, whatever is padded", "checked"
            ),
        ),
        reading="The spectral norm is the most a layer can stretch a vector. That of a convolution is "
        "bounded by its kernel: by the largest norm of its symbol, the kernel at one frequency, or by "
        "sums of absolute weights where that takes too long.",
        scale="A layer of norm 1 lengthens no vector.",
        table=Table(
            "Norms of dense layers and convolutions",
            ("layer", "operation", "weights", "spectral norm at most", "by"),
            tuple(
                (i, node.operation.name, _weights(node.operation), bound.value, bound.method)
                for i, (node, bound) in enumerate(zip(layers, bounds, strict=True), 1)
            ),
        ),
    )


def _norm_of(operation: Any, budget: float) -> NormBound:
    if isinstance(operation, Dense):
        return spectral_norm(operation.weight, budget=budget)
    return convolution_norm(operation, budget=budget)


def _weights(operation: Any) -> str:
    weights = operation.weight if isinstance(operation, Dense) else operation.kernel
    return " × ".join(f"{n:,}" for n in weights.shape)


def _frobenius(W: Matrix) -> float:
    return norm_up(W.data if sp.issparse(W) else W)


def _range(values: list[float]) -> str:
    low, high = number_text(min(values)), number_text(max(values))
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class _SteepestCell:
    """The Lipschitz constant on a box, from all cells.

    Attributes:
        value: The largest norm of a cell's matrix, to rounding.
        attained: Slope between two points of that cell, rounded down.
        n_cells: How many cells there are.
        place: The box in words.
    """

    value: float
    attained: float
    n_cells: int
    place: str


def _steepest_cell(subject: Subject) -> _SteepestCell | None:
    """Return the steepest cell on the subject's box; None unless all cells are known or cheap."""
    here = _regions(subject)
    if here is None or here.complex is None or not here.complex.complete or not len(here.complex):
        return None
    found = lipschitz_constant(here.complex)
    if not np.isfinite(found.value):
        return None
    corners = here.complex.cells.vertices(found.cell)
    attained = _attained(subject, here, found, float(np.ptp(corners, axis=0).max()))
    return _SteepestCell(found.value, attained, len(here.complex), here.domain.text)


def _regions(subject: Subject) -> Regions | None:
    known = known_regions(subject)
    varying = int(np.count_nonzero(subject.box.lower < subject.box.upper))
    if known is not None or not subject.net.size or varying > MAX_INPUTS_FOR_STEEPEST_CELL:
        return known
    try:
        return regions(subject)
    except (NotApplicable, OutOfTime):
        return None


def _attained(subject: Subject, here: Regions, found: LipschitzConstant, size: float) -> float:
    """Return the steepest proved slope along the steepest direction of the cell."""
    inputs = list(here.domain.inputs)

    def placed(point: Array) -> Array:
        x = np.array(subject.box.lower)
        x[inputs] = point
        return x

    ends = [found.point + step * size * found.direction for step in SLOPE_STEPS]
    start = placed(found.point)
    return max(proved_slope(subject.net, start, placed(end)) for end in ends)
