"""What the network is made of and what it costs."""

from __future__ import annotations

import scipy.sparse as sp

from pindown.affine import Affine, stored_entries
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count, memory, shape
from pindown.network import ReluNetwork
from pindown.visible_text import printable


@question(
    "ARC-01",
    "Architecture and cost",
    group="which",
    about="Widths, ReLUs, parameters, multiply-adds per input and memory, and what the reader of the "
    "model file had to do.",
    cost=(0.05, 0),
    place=1,
)
def architecture_and_cost(subject: Subject) -> Finding:
    """Count what the network is made of."""
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
            tuple(_row(i, layer) for i, layer in enumerate(net.layers, 1)),
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


def _noted(net: ReluNetwork) -> str:
    """Return what the reader of the model noted, as sentences."""
    return " ".join(f"{printable(note).removesuffix('.')}." for note in net.notes)


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
    if net.output_activation:
        parts.append(
            f"The model ends in {net.output_activation}, which is left out here; it does not change "
            "which output is largest."
            if net.out_features > 1
            else f"The model ends in {net.output_activation}, which is left out here."
        )
    if net.notes:
        parts.append(f"Noted when reading the model: {_noted(net)}")
    return " ".join(parts)


def _row(number: int, layer: Affine) -> tuple[int, int, int, int, str]:
    stored = stored_entries(layer.weight)
    kind = "sparse" if sp.issparse(layer.weight) else "dense"
    return number, layer.in_features, layer.out_features, stored, kind
