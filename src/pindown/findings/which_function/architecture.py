"""What the network is made of and costs, and which of its units do something.

Units are judged on the data, for every input in a box, and by the weights alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, stored_entries
from pindown.deadline import OutOfTime
from pindown.equivalence import unit_relations
from pindown.equivalence.related_units import LayerRelations
from pindown.evidence import Assumption
from pindown.findings.asked_model import AskedModel, Function, last_activation
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.pictures import StackedBars
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.subject import Subject
from pindown.findings.tuning import MIN_ROWS_FOR_DEAD, NOISE_OF_A_SEARCH, SECONDS_PER_PARAMETER
from pindown.findings.wording import count, memory, percent, shape
from pindown.geometry import interval_bounds
from pindown.io.evaluated import Evaluated
from pindown.model.graph import Model, Node
from pindown.model.operations.elementwise import Elementwise
from pindown.network import ReluNetwork
from pindown.text import printable

_ON_DATA = ("dead", "constant", "always on", "switching")
_ON_BOX = ("dead", "always on", "undecided")
_RELATIONS = ("duplicate", "proportional", "opposite")


@question(
    "ARC-01",
    "Architecture and cost",
    group="which",
    about="Layers, units, parameters, multiply-adds per input and memory, as a framework counts them, "
    "and what the reader of the model file had to do.",
    cost=(0.05, 0),
    place=1,
)
def architecture_and_cost(subject: Subject) -> Finding:
    """Count what the network is made of."""
    given = subject.asked.given
    if isinstance(given, Evaluated):
        return _of_function(given)
    if isinstance(given, Model) and not isinstance(subject.values, ReluNetwork):
        return _of_operations(given, subject.asked)
    net = subject.net
    operations = sum(stored_entries(layer.weight) for layer in net.layers)
    hidden = len(net.hidden_widths)
    return Finding(
        verdict=f"{shape(net.widths)}: {count(net.n_parameters, 'parameter')}, "
        f"{count(net.size, 'ReLU')}",
        number=Quantity(net.n_parameters, "exact", "parameters"),
        reading=_reading(net, operations),
        scale="One multiply-add per stored weight. For comparison, LeNet-5 needs about 0.4 million for "
        "an image and ResNet-50 about 4 billion.",
        table=Table(
            "Affine layers, from input to output",
            ("layer", "inputs", "outputs", "weights stored", "storage"),
            tuple(_layer_row(i, layer) for i, layer in enumerate(net.layers, 1)),
        ),
        sentence=f"This network maps {count(net.in_features, 'input')} to "
        f"{count(net.out_features, 'output')} "
        + (
            f"through {count(net.size, 'ReLU')} in {count(hidden, 'layer')} and has "
            if net.size
            else "by one affine map without any ReLU and has "
        )
        + f"{count(net.n_parameters, 'parameter')}."
        + (f" {_noted(net)}" if net.notes else ""),
    )


def _of_function(given: Evaluated) -> Finding:
    """Say what is known of a function of which only values are known."""
    ends = f"{count(given.in_features, 'input')} to {count(given.out_features, 'output')}"
    return Finding(
        verdict=f"a function from {ends}; what it is made of is not known",
        number=Quantity(given.in_features, "exact", "inputs"),
        reading="Only values are known, so nothing is proved about it; what follows was measured. "
        + _noted(given),
        scale="A model file that pindown reads gets proofs as well.",
        sentence=f"This model maps {ends}; only its values are known.",
    )


def _of_operations(model: Model, asked: AskedModel) -> Finding:
    """Count a model whose operations are not the layers of a ReLU network: one with convolutions."""
    bends = [node for node in model.nodes if isinstance(node.operation, Elementwise)]
    units = sum(math.prod(node.shape) for node in bends)
    parameters = count(model.n_parameters, "parameter")
    inside = count(units, "unit")
    return Finding(
        verdict=f"{kinds_in_words(model)}: {parameters}, {inside}",
        number=Quantity(model.n_parameters, "exact", "parameters"),
        reading=f"One input costs {count(model.multiply_adds, 'multiply-add')}; the parameters take "
        f"{memory(4 * model.n_parameters)} in float32 and {memory(8 * model.n_parameters)} in float64. "
        f"{_written_out(asked)}{_ending(model)}",
        scale="A unit is one entry of an activation; parameters and multiply-adds are those of the "
        "operations themselves. For comparison, LeNet-5 needs about 0.4 million multiply-adds for an "
        "image and ResNet-50 about 4 billion.",
        table=Table(
            "Operations, from input to output",
            ("operation", "output", "units", "parameters", "multiply-adds"),
            tuple(_operation_row(model, node) for node in model.nodes if _counts(model, node)),
        ),
        sentence=f"This network maps {count(model.in_features, 'input')} to "
        f"{count(model.out_features, 'output')} through {inside} in "
        f"{count(len(bends), 'layer')} and has "
        f"{parameters}." + (f" {_noted(model)}" if model.notes else ""),
    )


def _written_out(asked: AskedModel) -> str:
    """Say how large the form is that exact answers are about, or that there is none."""
    if asked.why_not_exact:
        return "It has no exact piecewise-linear form here, so nothing is said about its cells."
    net = asked.exact
    return (
        "Written out as a ReLU network, which exact answers are about, it has "
        f"{count(net.size, 'ReLU')} and {net.n_parameters:,} weights and biases that are not zero."
    )


def kinds_in_words(model: Model) -> str:
    """Return the operations that compute something, each kind with its number.

    >>> from pindown.model.from_network import model_of_network
    >>> kinds_in_words(model_of_network(ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])))
    '2 Dense, 1 ReLU'
    """
    counted = Counter(node.operation.name for node in model.nodes if _counts(model, node))
    return ", ".join(f"{n:,} {name}" for name, n in counted.items())


def _counts(model: Model, node: Node) -> bool:
    operation = node.operation
    return isinstance(operation, Elementwise) or operation.multiply_adds(*model.shapes_into(node)) > 0


def _operation_row(model: Model, node: Node) -> tuple[str, str, int, int, int]:
    operation = node.operation
    units = math.prod(node.shape) if isinstance(operation, Elementwise) else 0
    shape = node.shape[1:] if node.shape[0] == 1 and len(node.shape) > 1 else node.shape
    made = " × ".join(f"{n:,}" for n in shape)
    costs = operation.multiply_adds(*model.shapes_into(node))
    return operation.name, made, units, operation.n_parameters, costs


def _noted(net: Function) -> str:
    """Return what the reader of the model noted, as sentences."""
    return " ".join(f"{printable(note).removesuffix('.')}." for note in net.notes)


def _ending(net: ReluNetwork | Model) -> str:
    """Return what was left out at the end, and what the reader noted, as sentences."""
    parts = []
    left_out = last_activation(net)
    if left_out:
        kept = "; it does not change which output is largest" if net.out_features > 1 else ""
        parts.append(f" The model ends in {left_out}, which is left out here{kept}.")
    if net.notes:
        parts.append(f" Noted when reading the model: {_noted(net)}")
    return "".join(parts)


def _reading(net: ReluNetwork, operations: int) -> str:
    size = net.n_parameters
    parts = [
        f"One input costs {count(operations, 'multiply-add')}; the parameters take {memory(4 * size)} "
        f"in float32 and {memory(8 * size)} in float64."
    ]
    sparse = [i for i, layer in enumerate(net.layers, 1) if sp.issparse(layer.weight)]
    if sparse:
        listed = ", ".join(map(str, sparse))
        everything = sum(layer.out_features * (layer.in_features + 1) for layer in net.layers)
        parts.append(
            f"Stored as sparse matrices, as convolutions are: layer{'s' * (len(sparse) > 1)} {listed}. "
            f"Their zeros are not counted as parameters. With them there would be {everything:,}."
        )
    return " ".join(parts) + _ending(net)


def _layer_row(number: int, layer: Affine) -> tuple[int, int, int, int, str]:
    stored = stored_entries(layer.weight)
    kind = "sparse" if sp.issparse(layer.weight) else "dense"
    return number, layer.in_features, layer.out_features, stored, kind


@question(
    "UNIT-01",
    "Units on the data",
    group="which",
    needs=("data", "graph"),
    about="How many units are dead, constant, always on or switching on the rows of data given.",
    cost=(0.3, 3),
    place=9,
)
def units_on_the_data(subject: Subject) -> Finding:
    """Sort units by the range of what enters them over the data."""
    assert subject.data is not None
    if not subject.asked.why_not_exact and not subject.net.size:
        raise NotApplicable("the network is affine: it has no ReLU")
    observed = subject.observe(subject.data)
    if not observed.lowest:
        raise NotApplicable("it has no ReLU")
    counts = []
    for low, high in zip(observed.lowest, observed.highest, strict=True):
        dead = high <= 0
        constant = ~dead & (low == high)
        on = ~dead & ~constant & (low >= 0)
        counts.append(
            (int(dead.sum()), int(constant.sum()), int(on.sum()), int((~(dead | constant | on)).sum()))
        )
    dead, constant, on, switching = np.sum(counts, axis=0).tolist()
    size, name = dead + constant + on + switching, subject.data.name
    return Finding(
        verdict=f"{dead:,} dead, {constant:,} constant, {on:,} always on, {switching:,} switching "
        f"of {count(size, 'unit')}{'' if observed.n == observed.n_given else f' on {observed.seen}'}",
        number=Quantity(dead / size, "exact", "%", label="dead"),
        hypotheses=(
            Assumption(
                f"a complete pass over the {name}: {observed.seen}",
                "checked" if observed.n == observed.n_given else "violated",
            ),
            Assumption("signs as float64 evaluation gives them"),
        ),
        reading=f"On {observed.seen} of the {name}: a dead unit is never positive, so removing it "
        "changes nothing on these rows; a unit that is always on acts linearly; only switching units "
        "bend the function. Other inputs may wake a dead unit.",
        scale="The share of dead units. At 0% every unit takes part on some row; dead ones are capacity "
        "that these rows do not use.",
        figure=_bars("Units of each layer by what they do on the data", _ON_DATA, counts),
        table=_layer_table("What the units of each layer do on the data", _ON_DATA, counts),
        facts={"dead": dead / size, "dead_count": float(dead), "units": float(size)}
        | ({"dead_on_many_rows": dead / size} if observed.n >= MIN_ROWS_FOR_DEAD else {}),
        noise={name: NOISE_OF_A_SEARCH * n for name, n in (("", dead / size), ("dead_count", dead))}
        if observed.n < observed.n_given
        else {},
        sentence=f"On {observed.seen} of the {name}, {_share(dead, size)} {_are(dead)} never on and "
        f"{_many(on + constant)} always on."
        if switching < size
        else f"On {observed.seen} of the {name}, every unit is on for some and off for others.",
    )


@question(
    "UNIT-02",
    "Units on the box",
    group="which",
    needs=("box", "relus"),
    about="How many units are proved dead or always on for every input in the box, by interval bounds.",
    cost=(0.1, 0),
)
def units_on_the_box(subject: Subject) -> Finding:
    """Decide units for every input in the box by interval bounds."""
    subject.require(SECONDS_PER_PARAMETER * subject.net.n_parameters)
    counts = []
    for low, high in interval_bounds(subject.net, subject.box)[:-1]:
        dead, on = high <= 0, (low >= 0) & (high > 0)
        counts.append((int(dead.sum()), int(on.sum()), int((~(dead | on)).sum())))
    dead, on, undecided = np.sum(counts, axis=0).tolist()
    size = subject.net.size
    return Finding(
        verdict=f"proved dead: {dead:,}, proved always on: {on:,}, undecided: {undecided:,} "
        f"of {count(size, 'unit')}",
        number=Quantity((dead + on) / size, "exact", "%", label="decided"),
        hypotheses=(
            Assumption("bounds rounded outwards, so they hold for the real-number network", "checked"),
            Assumption(f"inputs stay in {subject.box_name}"),
        ),
        reading=f"For every input in {subject.box_name}, not only for data: a unit proved dead can be "
        "removed and one proved always on is linear. Undecided units may switch; intervals ignore that "
        "units depend on each other, so deep layers are often undecided although they never switch.",
        scale="The share of units decided. It grows as the box shrinks, to 100% where the network is "
        "affine on the box; at 0% the box is too wide for intervals to say anything.",
        figure=_bars("Units of each layer by what interval bounds prove on the box", _ON_BOX, counts),
        table=_layer_table("What interval bounds prove about the units of each layer", _ON_BOX, counts),
        sentence=f"Anywhere in {subject.box_name}, interval bounds prove {_share(dead, size)} dead and "
        f"{_many(on)} always on."
        if dead + on
        else "",
    )


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _many(n: int) -> str:
    return f"{n:,}" if n else "none"


def _share(part: int, whole: int) -> str:
    return (
        f"{part:,} of {count(whole, 'unit')} ({percent(part / whole)})" if part else "none of the units"
    )


def _bars(caption: str, parts: Sequence[str], counts: Sequence[Sequence[int]]) -> StackedBars:
    return StackedBars(
        caption,
        tuple(f"layer {i}" for i in range(1, len(counts) + 1)),
        tuple(parts),
        tuple(tuple(float(n) for n in row) for row in counts),
        "units",
    )


def _layer_table(caption: str, parts: Sequence[str], counts: Sequence[Sequence[int]]) -> Table:
    rows = tuple((i, sum(row), *row) for i, row in enumerate(counts, 1))
    return Table(caption, ("layer", "units", *parts), rows)


@question(
    "SYM-01",
    "Weight symmetry",
    group="which",
    needs=("relus",),
    about="Units without incoming or outgoing weights, and duplicate, proportional or opposite units, "
    "exactly and to float32 rounding.",
    cost=(0.5, 0),
)
def weight_symmetry(subject: Subject) -> Finding:
    """Count units that repeat each other or do nothing, by their weights."""
    subject.require(SECONDS_PER_PARAMETER * subject.net.n_parameters)
    try:
        layers = unit_relations(subject.net, seed=subject.seed, budget=subject.turn.most)
    except TimeoutError:
        raise OutOfTime from None
    redundant = sum(len(layer.redundant) for layer in layers)
    exact = {kind: sum(layer.count(kind, exact=True) for layer in layers) for kind in _RELATIONS}
    near = {kind: sum(layer.count(kind, exact=False) for layer in layers) for kind in _RELATIONS}
    constant = sum(len(layer.constant) for layer in layers)
    unused = sum(len(layer.unused) for layer in layers)
    size = subject.net.size
    return Finding(
        verdict=_relations_verdict(constant, unused, exact, near),
        number=Quantity(redundant, "exact", "redundant units"),
        hypotheses=(
            Assumption("every pair that is counted was compared weight by weight", "checked"),
            Assumption(
                "no parallel pair was missed by the random keys that propose pairs (probability zero)"
            ),
        ),
        reading="Units whose incoming weights and bias are multiples of each other compute the same "
        "thing: positive multiples can be merged into one unit, and an opposite pair can carry "
        "a linear map. Units without incoming weights are constants, units without outgoing "
        "weights are ignored. Removing redundant units leaves the function as it is.",
        scale="0 is what training from random weights gives, short of a coincidence; pruning, joined "
        "networks and max pooling written with ReLUs leave some.",
        table=Table(
            "Units by what their weights say (in brackets: only to a relative 1e-6)",
            ("layer", "units", "redundant", "no input", "no output", *_RELATIONS),
            tuple(_relation_row(layer) for layer in layers),
        ),
        sentence=f"By the weights alone, {redundant:,} of {count(size, 'unit')} can be removed "
        "without changing the function."
        if redundant
        else "No unit is unconnected or repeats another, by the weights alone.",
    )


def _relations_verdict(constant: int, unused: int, exact: dict[str, int], near: dict[str, int]) -> str:
    parts = [
        f"{n:,} {text}"
        for n, text in (
            (constant, "without incoming weights"),
            (unused, "without outgoing weights"),
            *((exact[kind], kind) for kind in _RELATIONS),
            *((near[kind], f"{kind} to rounding") for kind in _RELATIONS),
        )
        if n
    ]
    return (
        "units: " + ", ".join(parts) if parts else "no zero, duplicate, proportional or opposite units"
    )


def _relation_row(layer: LayerRelations) -> tuple[int | str, ...]:
    return (
        layer.layer,
        layer.width,
        len(layer.redundant),
        len(layer.constant),
        len(layer.unused),
        *(_relation_entry(layer, kind) for kind in _RELATIONS),
    )


def _relation_entry(layer: LayerRelations, kind: str) -> int | str:
    exact, near = layer.count(kind, exact=True), layer.count(kind, exact=False)
    return f"{exact:,} (+{near:,})" if near else exact
