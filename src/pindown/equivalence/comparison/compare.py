"""`diff`: every way to decide whether two networks are one function, in the order of their cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.equivalence.changes import gap_of_changes
from pindown.equivalence.comparison.label_gap import compare_labels
from pindown.equivalence.comparison.paired import align_exactly, layer_differences
from pindown.equivalence.comparison.result import Diff, LayerDifference, verdict_of
from pindown.equivalence.gap import GapState, narrow
from pindown.equivalence.gap.witness import proved_gap, search
from pindown.equivalence.matching import Matching, match
from pindown.equivalence.shrinking import Shrunk, shrink_and_settle
from pindown.geometry.box import Box, as_box
from pindown.geometry.rounding import add_up, norm_up, product_up
from pindown.network import ReluNetwork
from pindown.parallel import few_threads

Model: TypeAlias = ReluNetwork | str | PathLike[str]
Report: TypeAlias = Callable[[str, int, int], None]

# The first look for a witness: most different pairs show it at once.
_FIRST_SEARCH_SECONDS = 0.3
# Of the time left: for bounding the gap of paired networks, and for making networks smaller.
_PAIRED_SHARE = 0.35
_SHRINK_SHARE = 0.25
_SHRINK_LOSS = 0.15
# Once networks are proved different, how long to look for a finite upper end.
_CLOSING_SECONDS = 0.5
# Rows that differ by more are not the same unit any more: their bounds would say nothing.
_PAIRED_TOLERANCE = 0.3


@dataclass
class _Comparison:
    """Two networks, what is proved about them so far, and until when to go on."""

    first: ReluNetwork
    second: ReluNetwork
    box: Box | None
    tol: float
    deadline: float
    seed: int
    report: Report | None
    began: float = field(default_factory=time.monotonic)
    state: GapState = field(default_factory=GapState)
    layers: tuple[LayerDifference, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    @property
    def goes_on(self) -> bool:
        """Whether nothing is decided, and there is time to go on."""
        undecided = verdict_of(self.state.lower, self.state.upper, self.tol) == "undecided"
        return undecided and self.left > 0

    def take(
        self,
        method: str,
        *,
        upper: float = inf,
        point: ArrayLike | None = None,
        lower: float | None = None,
    ) -> None:
        """Take over an upper bound, or a point; its gap is proved for the given networks, if unknown."""
        witness = None if point is None else np.asarray(point, dtype=np.float64)
        if witness is None:
            lower = 0.0
        elif lower is None:
            lower = proved_gap(self.first, self.second, witness, relative=self.box is None)
        seconds = time.monotonic() - self.began
        self.state = self.state.narrowed(seconds, method, lower=lower, upper=upper, witness=witness)
        self.say(method)

    def say(self, what: str) -> None:
        if self.report is not None:
            total = self.deadline - self.began
            steps = 1000 if isfinite(total) else 1
            done = int(steps * min(1.0, (time.monotonic() - self.began) / total)) if total > 0 else 0
            interval = f"gap in [{self.state.lower:.3g}, {self.state.upper:.3g}]"
            self.report(f"{what}: {interval}", done, steps)


def diff(
    a: Model,
    b: Model,
    *,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    tol: float = 1e-5,
    budget: float = 60.0,
    seed: int = 0,
    labels: float | None = None,
    progress: Report | None = None,
) -> Diff:
    r"""Decide whether two networks are the same function, with a proof, a witness or an interval.

    .. math::
        \mathrm{gap} = \sup_{x \in \mathrm{box}} \max_k |a_k(x) - b_k(x)|, \qquad
        \text{without a box} \quad
        \sup_{x \in \mathbb{R}^d} \max_k \frac{|a_k(x) - b_k(x)|}{1 + \|x\|_2}.

    In order: a short search for a witness; pairing the units of both and bounding what still differs;
    the same after every lossless reduction; then bounds on the difference of the two (linear
    relaxation, exact cells, mixed-integer programs, branch and bound) until the interval decides or
    the time is over.

    Args:
        a: A network, or the path of a model file.
        b: Another with as many inputs and outputs; depth and widths may differ.
        box: The inputs that matter; None for all of :math:`\mathbb{R}^d`, in the relative sense.
        tol: The networks count as the same if the gap is at most this.
        budget: Seconds; when they are over, what was proved until then is returned.
        seed: Chooses the points of the searches.
        labels: Ask as well whether the classes they choose ever differ by more than this margin.
        progress: Called with a message, steps done and steps in all.

    Returns:
        The verdict with its proved interval. Ctrl-C returns what was proved so far.

    Raises:
        ValueError: If input or output sizes differ, or the box, ``tol`` or ``budget`` make no sense.

    Example:
        The same function, units in another order and rescaled:

        >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 3]), ([[1.0, 2.0]], [0])])
        >>> b = ReluNetwork.from_layers([([[-4.0], [1.0]], [12, 0]), ([[0.5, 1.0]], [0])])
        >>> answer = diff(a, b)
        >>> answer.verdict, answer.gap_upper, answer.proof
        ('same', 0.0, 'units paired: equal')

    Phuong and Lampert 2020 (which networks are equal only by permuting and rescaling units).
    """
    began = time.monotonic()
    first, second = _network(a), _network(b)
    domain = _checked(first, second, box, tol, budget, labels, seed)
    run = _Comparison(first, second, domain, float(tol), began + budget, seed, progress, began)
    interrupted, answer = False, None
    try:
        with few_threads(first), few_threads(second):
            _compare(run)
        if labels is not None:
            answer = compare_labels(first, second, domain, labels, run.state, run.deadline, seed)
    except KeyboardInterrupt:
        interrupted = True
    state = run.state
    if state.lower > state.upper:
        raise RuntimeError(
            "two proofs about these networks contradict each other; this is a defect of pindown: "
            "please report it with both models."
        )
    return Diff(
        verdict=verdict_of(state.lower, state.upper, run.tol),
        gap_lower=state.lower,
        gap_upper=state.upper,
        witness=state.witness,
        proof=_proof(run),
        tol=run.tol,
        box=domain,
        first=first,
        second=second,
        layers=run.layers,
        steps=run.steps,
        history=state.history,
        labels=answer,
        names=(_name(a, "the first network"), _name(b, "the second network")),
        seconds=time.monotonic() - began,
        interrupted=interrupted,
    )


def _network(model: Model) -> ReluNetwork:
    if isinstance(model, ReluNetwork):
        return model
    if isinstance(model, (str, PathLike)):
        from pindown.io import load

        return load(model)
    raise TypeError(f"diff takes networks or paths of model files; got {type(model).__name__}.")


def _name(model: Model, otherwise: str) -> str:
    return otherwise if isinstance(model, ReluNetwork) else Path(model).name


def _checked(
    first: ReluNetwork,
    second: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike] | None,
    tol: float,
    budget: float,
    labels: float | None,
    seed: int,
) -> Box | None:
    """Return the box; complain in one line about what cannot be compared."""
    sizes = [(net.in_features, net.out_features) for net in (first, second)]
    if sizes[0] != sizes[1]:
        (d, k), (e, m) = sizes
        raise ValueError(
            "networks to compare need equal input and output sizes; "
            f"the first takes {d} and gives {k}, the second takes {e} and gives {m}."
        )
    if not 0 <= tol < inf:
        raise ValueError(f"tol must be a finite number >= 0; got {tol}.")
    if isnan(budget) or budget < 0:
        raise ValueError(f"budget must be a number of seconds >= 0; got {budget}.")
    if labels is not None and not 0 <= labels < inf:
        raise ValueError(f"the margin of labels must be a finite number >= 0; got {labels}.")
    if seed < 0:
        raise ValueError(f"seed must be an integer >= 0; got {seed}.")
    if labels is not None and first.out_features < 2:
        raise ValueError("labels need networks with two or more outputs; these have one.")
    return None if box is None else as_box(box, first.in_features)


def _compare(run: _Comparison) -> None:
    """Narrow the interval until it decides."""
    if run.first == run.second:
        run.take("identical weights", upper=0.0)
        return
    budget = min(_FIRST_SEARCH_SECONDS, 0.1 * run.left)
    found = search(run.first, run.second, run.box, target=run.tol, budget=budget, seed=run.seed)
    if found.gap > 0:
        run.take("search", point=found.point, lower=found.gap)
    # What holds for all inputs is found by looking at the weights; what holds on the box takes proofs.
    pair = _paired(run, _Pair(run.first, run.second))
    for domain in (None,) if run.box is None else (None, run.box):
        if run.goes_on:
            pair, settled = _smaller(run, pair, domain)
            pair = _paired(run, pair)
        if run.goes_on:
            _paired(run, settled)
    if run.goes_on:
        _narrow(run, pair)
    else:
        _close(run, pair)


@dataclass(frozen=True)
class _Pair:
    """Two networks that stand for the given ones; ``slack`` is what that may add to their gap."""

    a: ReluNetwork
    b: ReluNetwork
    slack: float = 0.0
    tried: bool = False


def _paired(run: _Comparison, pair: _Pair) -> _Pair:
    """Pair the units and bound what still differs; put b's units in a's order, if they pair."""
    if pair.tried or pair.a.widths != pair.b.widths:
        return pair
    run.say("pairing units")
    try:
        matching = match(pair.a, pair.b, deadline=run.deadline)
    except TimeoutError:
        return replace(pair, tried=True)
    if matching.symmetry is not None:
        run.layers = layer_differences(matching, pair.a)
    if not _pairs(matching) or not run.left:
        return replace(pair, tried=True)
    target, budget = max(0.0, run.tol - pair.slack), _PAIRED_SHARE * run.left
    bound = gap_of_changes(pair.a, matching.changes, box=run.box, target=target, budget=budget)
    run.take(f"units paired: {bound.method}", upper=float(add_up(bound.value, pair.slack)))
    aligned = align_exactly(pair.b, matching) if run.goes_on else None
    return replace(pair, b=pair.b if aligned is None else aligned, tried=True)


def _pairs(matching: Matching) -> bool:
    """Return whether the pairing is good enough to say something about the gap."""
    if matching.symmetry is None or "opposite" in matching.reason:
        return False
    return max(matching.residuals) <= _PAIRED_TOLERANCE


def _smaller(run: _Comparison, pair: _Pair, box: Box | None) -> tuple[_Pair, _Pair]:
    """Shrink both by what holds on the box (None: everywhere); also with linear parts settled."""
    run.say("looking for smaller networks")
    growth = _growth(box, run.box)
    loss = _SHRINK_LOSS * run.tol / growth
    found = [
        shrink_and_settle(net, box=box, tol=loss, budget=_SHRINK_SHARE * run.left)
        for net in (pair.a, pair.b)
    ]
    small, settled = ([both[i] for both in found] for i in (0, 1))
    return (
        _standing_for(run, pair, small, growth, record=True),
        _standing_for(run, pair, settled, growth),
    )


def _standing_for(
    run: _Comparison, pair: _Pair, found: list[Shrunk], growth: float, *, record: bool = False
) -> _Pair:
    """Return the pair of reduced networks, with what the reduction may have cost."""
    if not any(shrunk.steps for shrunk in found):
        return pair
    slack = pair.slack
    for name, shrunk in zip(("first", "second"), found, strict=True):
        slack = float(add_up(slack, product_up([shrunk.gap_upper, growth])))
        if record:
            run.steps += tuple(f"{name} network: {step}" for step in shrunk.steps)
    return _Pair(found[0].network, found[1].network, slack)


def _growth(proved_on: Box | None, wanted: Box | None) -> float:
    """Return what a gap is multiplied by where it is wanted: one relative to 1 + |x| grows on a box."""
    if wanted is None or proved_on is not None:
        return 1.0
    return float(add_up(1.0, norm_up(np.maximum(np.abs(wanted.lower), np.abs(wanted.upper)))))


def _narrow(run: _Comparison, pair: _Pair) -> None:
    """Bound the gap by all that works on arbitrary networks."""
    if pair.slack < run.tol or pair.slack == 0.0:
        _narrow_pair(run, pair)
    if pair.slack > 0.0 and run.goes_on:  # the reduced networks cannot decide: those given may
        _narrow_pair(run, _Pair(run.first, run.second))


def _narrow_pair(run: _Comparison, pair: _Pair) -> None:
    tried: Array | None = None

    def better(state: GapState) -> None:
        nonlocal tried
        method = state.history[-1].method
        if state.witness is not None and state.witness is not tried:
            tried = state.witness
            run.take(method, point=tried)
        run.take(method, upper=float(add_up(state.upper, pair.slack)))

    tol = max(0.0, run.tol - pair.slack)
    narrow(pair.a, pair.b, run.box, tol=tol, deadline=run.deadline, seed=run.seed, progress=better)


def _close(run: _Comparison, pair: _Pair) -> None:
    """Give a pair that is proved different a finite upper end too, if that is cheap."""
    if isfinite(run.state.upper) or not run.left:
        return
    deadline = time.monotonic() + min(_CLOSING_SECONDS, run.left)
    state = narrow(pair.a, pair.b, run.box, precision=inf, deadline=deadline, seed=run.seed)
    if state.history:
        run.take(state.history[-1].method, upper=float(add_up(state.upper, pair.slack)))


def _proof(run: _Comparison) -> str:
    """Say in a few words what settled the verdict, or what was reached."""
    history = run.state.history
    if not history:
        return "nothing could be proved in the time given"
    verdict = verdict_of(run.state.lower, run.state.upper, run.tol)
    if verdict == "different":
        step = next(step for step in history if step.lower > run.tol)
        return f"witness by {step.method}"
    if verdict == "same":
        step = next(step for step in history if step.upper <= run.tol)
        return step.method
    return f"best bounds so far by {history[-1].method}"
