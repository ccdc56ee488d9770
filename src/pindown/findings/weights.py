"""What the weights alone say about units that repeat each other or do nothing."""

from __future__ import annotations

from pindown.equivalence import unit_relations
from pindown.equivalence.unit_relations import LayerRelations
from pindown.findings.deadline import OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count

_KINDS = ("duplicate", "proportional", "opposite")


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
    subject.require(1e-8 * subject.net.n_parameters)
    try:
        layers = unit_relations(subject.net, seed=subject.seed, budget=subject.deadline.most)
    except TimeoutError:
        raise OutOfTime from None
    redundant = sum(len(layer.redundant) for layer in layers)
    exact = {kind: sum(layer.count(kind, exact=True) for layer in layers) for kind in _KINDS}
    near = {kind: sum(layer.count(kind, exact=False) for layer in layers) for kind in _KINDS}
    constant = sum(len(layer.constant) for layer in layers)
    unused = sum(len(layer.unused) for layer in layers)
    size = subject.net.size
    return Finding(
        verdict=_verdict(constant, unused, exact, near),
        number=Quantity(redundant, "exact", "redundant units"),
        hypotheses=(
            Hypothesis("every pair that is counted was compared weight by weight", "checked"),
            Hypothesis(
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
            ("layer", "units", "redundant", "no input", "no output", *_KINDS),
            tuple(_row(layer) for layer in layers),
        ),
        sentence=f"By the weights alone, {redundant:,} of {count(size, 'unit')} can be removed "
        "without changing the function."
        if redundant
        else "No unit is unconnected or repeats another, by the weights alone.",
    )


def _verdict(constant: int, unused: int, exact: dict[str, int], near: dict[str, int]) -> str:
    parts = [
        f"{n:,} {text}"
        for n, text in (
            (constant, "without incoming weights"),
            (unused, "without outgoing weights"),
            *((exact[kind], kind) for kind in _KINDS),
            *((near[kind], f"{kind} to rounding") for kind in _KINDS),
        )
        if n
    ]
    return (
        "units: " + ", ".join(parts) if parts else "no zero, duplicate, proportional or opposite units"
    )


def _row(layer: LayerRelations) -> tuple[int | str, ...]:
    return (
        layer.layer,
        layer.width,
        len(layer.redundant),
        len(layer.constant),
        len(layer.unused),
        *(_cell(layer, kind) for kind in _KINDS),
    )


def _cell(layer: LayerRelations, kind: str) -> int | str:
    exact, near = layer.count(kind, exact=True), layer.count(kind, exact=False)
    return f"{exact:,} (+{near:,})" if near else exact
