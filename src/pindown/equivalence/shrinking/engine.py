"""Every rule in turn, to a fixed point; then the proofs that take time, and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

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
from pindown.network import ReluNetwork
from pindown.progress import Report, silent
from pindown.relaxation.differential import proved_gap
from pindown.validation import positive

Rule = Callable[[Draft, int], bool]

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


def shrink(
    net: ReluNetwork | Any,
    *,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    tol: float = 0.0,
    budget: float = 60.0,
    progress: Report | None = None,
    activation: str | None = None,
) -> Shrunk:
    r"""Make a network smaller without changing its function, by every reduction that can be proved.

    To a fixed point: units that are unused, dead or constant go; copies and positive multiples of a
    unit are merged; a layer goes whose successor can be computed from its input; opposite pairs that
    add up to a linear map, and always-on units beyond that map's rank, are carried by fewer. What is
    zero or equal is decided in exact arithmetic. On a box the signs of units are proved by intervals,
    linear bounds, smaller boxes and mixed-integer programs, as far as the budget goes.

    Args:
        net: The network, or the path of a model file, a torch module or a fitted scikit-learn MLP.
        box: The inputs that count, a Box or a pair (lower, upper). Without one only reductions that
            hold for every input are made.
        tol: With 0 only steps that are identities in real arithmetic; what rounding of their weights
            changes is part of ``gap_upper``, at most 1e-9 of the function's size in each. Above,
            units that are nearly copies or nearly constant go as well, each only if the proved gap of
            all steps together is at most ``tol`` then.
        budget: Seconds. When they are over, what was found is returned.
        progress: Told every step and how many there are so far.
        activation: ``"relu"``, if a path is that of a state dict: that is what lies between its layers,
            which the file does not say.

    Returns:
        The network, the steps with their reasons, and ``gap_upper``: a proved bound on what rounding
        the new weights (and ``tol``) changed, 0.0 if no operation rounded.

    Raises:
        ValueError: If the box does not fit the network, or tol or budget is negative or not a number.
        TypeError: If ``net`` is none of these.

    Example:
        ``relu(x) - relu(-x)`` is x, and relu(x + 5) is never off on [-1, 1]:

        >>> layers = [([[1.0], [-1.0], [1.0]], [0, 0, 5]), ([[1.0, -1.0, 2.0]], [0])]
        >>> net = ReluNetwork.from_layers(layers)
        >>> shrink(net, box=([-1], [1]))
        3 -> 0 ReLUs, 2 -> 1 layers, 1 step, gap <= 0
        >>> shrink(net).network.layers == net.layers
        True

    Phuong 2021, sections 2.1 and 2.2: each rule is the failure of a condition for a network to be
    determined by its function.
    """
    from pindown.io.any_model import as_network

    network = as_network(net, "shrink", activation)
    domain = _checked(network, box, tol, budget)
    return _shrunk(_reduced(network, domain, tol, budget, progress), network)


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
    draft = _reduced(net, _checked(net, box, tol, budget), tol, budget, None)

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
    draft = Draft(net, box, tol, proofs, _scale(net, box), progress or silent)
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
        rng = np.random.default_rng(1)
        points = (
            rng.standard_normal((CHECKED_SAMPLES, net.in_features))
            if draft.box is None
            else draft.box.sample(CHECKED_SAMPLES, rng)
        )
        for x in points:
            if proved_gap(net, draft.net, x, draft.box is None, closely=False) > draft.gap:
                raise RuntimeError(
                    "the smaller network contradicts the proof that it is the same function; this is "
                    "a defect of pindown: please report it with the model."
                )
    steps = tuple(draft.steps)
    return Shrunk(
        draft.net, steps, draft.gap, net, not draft.out_of_time, draft.by_programs and bool(steps)
    )


def _checked(net: object, box: Any, tol: object, budget: object) -> Box | None:
    """Refuse what cannot be meant; return the box."""
    if not isinstance(net, ReluNetwork):
        raise TypeError(
            f"shrink takes a ReluNetwork; got {type(net).__name__}. Read files with pindown.load."
        )
    positive("tol", tol, zero=True)
    checked_budget(budget, zero=True)
    return None if box is None else as_box(box, net.in_features)


def _scale(net: ReluNetwork, box: Box | None) -> float:
    """Return the size of the function at a few inputs, at least one."""
    rng = np.random.default_rng(0)
    points = (
        rng.standard_normal((SCALE_SAMPLES, net.in_features))
        if box is None
        else box.sample(SCALE_SAMPLES, rng)
    )
    try:
        return max(1.0, float(np.abs(net(points)).max()))
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
