"""Every rule in turn, to a fixed point; then the proofs that take time, and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline, checked_budget
from pindown.equivalence.shrinking._duplicate_and_dead_units import (
    drop_negligible,
    drop_units,
    merge_copies,
    merge_near_copies,
)
from pindown.equivalence.shrinking._kink_form import settle, settling_seconds
from pindown.equivalence.shrinking._linear_carriers import narrow_by_rank, narrow_linear
from pindown.equivalence.shrinking._linear_part import carry_pairs, merge_dependent
from pindown.equivalence.shrinking._proposals import Draft
from pindown.equivalence.shrinking._removed_layers import remove_layer
from pindown.equivalence.shrinking._rounding_cleanup import clear_faint, move_off_zero, snap_opposites
from pindown.equivalence.shrinking._sign_proofs import prove_signs
from pindown.equivalence.shrinking.result import Shrunk
from pindown.equivalence.tuning import CHECKED_SAMPLES, PROOF_SHARE, SCALE_SAMPLES, SETTLING_SHARE
from pindown.io.accepting import on_network
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.progress import Report, silent
from pindown.relaxation.differential import proved_gap
from pindown.validation import positive

Rule = Callable[[Draft, int], bool]
CONTRADICTION = (
    "the smaller network contradicts the proof that it is the same function; this is a defect of "
    "pindown: please report it with the model."
)

# In this order: what removes units makes the later, larger rewrites cheaper.
_RULES: tuple[Rule, ...] = (
    drop_units,
    merge_copies,
    remove_layer,
    carry_pairs,
    merge_dependent,
    narrow_linear,
)
# With a tolerance first of all what is redundant up to rounding, before exact rules rearrange it.
_CLEANING_RULES: tuple[Rule, ...] = (clear_faint, move_off_zero, merge_near_copies, snap_opposites)
_LOSSY_RULES: tuple[Rule, ...] = (narrow_by_rank, drop_negligible)


def shrunk_network(
    net: ReluNetwork, box: Box | None, tol: float, budget: float, progress: Report | None = None
) -> Shrunk:
    """Make a ReLU network smaller, with every rule; see :func:`pindown.shrink`."""
    return _shrunk(_reduced(net, box, tol, budget, progress), net)


@on_network
def shrink_and_settle(
    net: ReluNetwork, *, box: Box | None, tol: float = 0.0, budget: float = 60.0
) -> tuple[Shrunk, Callable[[], Shrunk]]:
    """Shrink, and offer to write the result by its kinks alone.

    The second network is larger than the first. But networks that carry the same linear maps by other
    units become alike, up to the order and scale of units.

    Returns:
        The smaller network, and a function that returns the settled one, which takes some time; both
        with their gap to the given one.
    """
    draft = _reduced(net, checked(net, box, tol, budget), tol, budget, None)

    def settled() -> Shrunk:
        if settling_seconds(draft.net) <= SETTLING_SHARE * budget:
            later = Deadline.after(SETTLING_SHARE * budget)
            draft.deadline = max(draft.deadline, later, key=lambda deadline: deadline.end)
            settle(draft)
        return _shrunk(draft, net)

    return _shrunk(draft, net), settled


def _reduced(
    net: ReluNetwork, box: Box | None, tol: float, budget: float, progress: Report | None
) -> Draft:
    """Apply all rules to a fixed point: what holds for every input first, then what holds on the box.

    The first is found at sight, so a box never leaves more than none would. But it may rewrite what the
    second could use better; so the box alone gets a try as well, in the time that is left.
    """
    proofs, end = Deadline.after(PROOF_SHARE * budget), Deadline.after(budget)
    draft = Draft(net, box, tol, proofs, scale_of(net, box), progress or silent)
    if box is not None:
        with draft.for_every_input():
            while _at_sight(draft, end):
                pass
    rewritten = box is not None and bool(draft.steps)
    _to_the_end(draft, end)
    if not rewritten or draft.out_of_time:
        return draft
    other = Draft(net, box, tol, proofs, draft.scale)
    _to_the_end(other, end)
    return other if other.net.size < draft.net.size else draft


def _to_the_end(draft: Draft, end: Deadline) -> None:
    while (
        _at_sight(draft, end)
        or prove_signs(draft)
        or (draft.tol > 0 and _apply(_LOSSY_RULES, draft, draft.deadline))
    ):
        pass


def _at_sight(draft: Draft, end: Deadline) -> bool:
    """Apply the rules that need no search; return whether anything changed."""
    cleaned = draft.tol > 0 and _apply(_CLEANING_RULES, draft, draft.deadline)
    return cleaned or _apply(_RULES, draft, end)


def _shrunk(draft: Draft, net: ReluNetwork) -> Shrunk:
    """Return the result, after a look at a few inputs: a proof must survive it."""
    if draft.steps:
        for x in sampled(net, draft.box, CHECKED_SAMPLES, 1):
            if proved_gap(net, draft.net, x, draft.box is None, closely=False) > draft.gap:
                raise RuntimeError(CONTRADICTION)
    steps = tuple(draft.steps)
    return Shrunk(
        draft.net, steps, draft.gap, net, not draft.out_of_time, draft.by_programs and bool(steps)
    )


def checked(net: object, box: Any, tol: object, budget: object) -> Box | None:
    """Refuse what cannot be meant; return the box."""
    if not isinstance(net, (Model, ReluNetwork)):
        raise TypeError(
            f"shrink takes a Model or a ReluNetwork; got {type(net).__name__}. "
            "Read files with pindown.load."
        )
    positive("tol", tol, zero=True)
    checked_budget(budget, zero=True)
    return None if box is None else as_box(box, net.in_features)


def sampled(net: ReluNetwork | Model, box: Box | None, n: int, seed: int) -> Array:
    """Return a few inputs: of the box, or normally distributed ones."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, net.in_features)) if box is None else box.sample(n, rng)


def scale_of(net: ReluNetwork | Model, box: Box | None, n: int = SCALE_SAMPLES) -> float:
    """Return the size of the function at a few inputs, at least one."""
    try:
        return max(1.0, float(np.abs(net(sampled(net, box, n, 0))).max()))
    except ValueError:  # it overflows
        return 1.0


def _apply(rules: tuple[Rule, ...], draft: Draft, end: Deadline) -> bool:
    """Apply the first rule that changes something, to every layer, the last layer first.

    Returns:
        Whether anything changed; the rules are then to be tried again from the first one on.
    """
    before = len(draft.steps)
    for rule in rules:
        for layer in reversed(range(draft.net.depth - 1)):
            if end.passed:
                return False
            if layer < draft.net.depth - 1:
                rule(draft, layer)
        if len(draft.steps) > before:
            return True
    return False
