"""Two checkpoints of one model: their audits side by side, and how far apart the functions are."""

from __future__ import annotations

from pindown.audit_result import Audit
from pindown.findings.comparison import Comparison, Distance, changes
from pindown.findings.deadline import checked_budget
from pindown.findings.reference_box import reference_box
from pindown.network import ReluNetwork
from pindown.visible_text import printable


def compare_audits(before: Audit, after: Audit, *, budget: float = 10.0) -> Comparison:
    """Put two audits side by side, and measure how far apart the two functions are.

    Args:
        before: The audit of one checkpoint.
        after: The audit of another, with as many inputs and outputs; its box is where they are compared.
        budget: Seconds to spend on the distance.

    Returns:
        What changed, finding by finding, with a proved interval for the largest gap of any output.

    Raises:
        ValueError: If the numbers of inputs or outputs differ, or the budget is not positive.
        TypeError: If one of them is no audit.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> from pindown import audit
    >>> gap = compare_audits(audit(net, only="ARC"), audit(2.0 * net, only="ARC")).distance
    >>> gap.verdict, gap.lower <= 1.0 <= gap.upper
    ('different', True)
    """
    for given in (before, after):
        if not isinstance(given, Audit):
            raise TypeError(f"compare_audits takes two audits; got {type(given).__name__}.")
    check_sizes(before.network, after.network)
    return compared(before, after, checked_budget(budget))


def compared(before: Audit, after: Audit, budget: float) -> Comparison:
    """Put two audits that were checked side by side; without time the distance is left out."""
    notes, failed = [], list(before.failed)
    if failed:
        notes.append(f"About {before.name}, failed by an error in pindown itself: {', '.join(failed)}.")
    try:
        distance = distance_between(before.network, after, budget)
    except Exception as error:  # what was found about the two is not lost with it
        distance = None
        failed.append("distance")
        words = f"{type(error).__name__}: {error}"
        notes.append(f"How far apart the two are: failed by an error in pindown itself, {words}.")
    if before.network == after.network:
        notes.append("The two networks have the same weights.")
    if before.given != after.given:
        notes.append(f"The two audits were given different things: {before.given}; {after.given}.")
    if before.interrupted or after.interrupted:
        notes.append("One of the audits was interrupted.")
    for note in before.network.notes:
        if note not in after.network.notes:  # those of the later one stand in its own audit
            notes.append(f"{before.name}: {printable(note)}")
    rows = changes(before.findings, after.findings)
    return Comparison(before.name, after.name, rows, distance, tuple(notes), tuple(failed))


def distance_between(before: ReluNetwork, after: Audit, budget: float) -> Distance | None:
    """Enclose the largest gap of any output on the audit's box; None without time or in overflow."""
    from pindown.equivalence import diff

    if budget <= 0:
        return None
    box, place = after.box, after.box_name
    if box is None:
        box, inputs = reference_box(after.network)
        place = f"the reference box {inputs}"
    try:
        found = diff(before, after.network, box=box, budget=budget, seed=after.seed)
    except ValueError:  # sizes fit, so it is numbers that leave float64
        return None
    return Distance.of(found, place)


def check_sizes(before: ReluNetwork, after: ReluNetwork) -> None:
    """Refuse networks that cannot be compared.

    Raises:
        ValueError: If they have different numbers of inputs or outputs.
    """
    sizes = [(net.in_features, net.out_features) for net in (before, after)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"before must have as many inputs and outputs as the network; got {sizes[0][0]} and "
            f"{sizes[0][1]} for {sizes[1][0]} and {sizes[1][1]}."
        )
