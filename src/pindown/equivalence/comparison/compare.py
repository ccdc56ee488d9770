"""`diff`: every way to decide whether two networks are one function, in the order of their cost."""

from __future__ import annotations

import time
from math import inf, isfinite, isnan
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.equivalence.comparison import GapState, narrow
from pindown.equivalence.comparison.labels import compare_labels, unsearched
from pindown.equivalence.comparison.pairs import Pair, paired, smaller
from pindown.equivalence.comparison.result import Diff, verdict_of
from pindown.equivalence.comparison.run import Comparison, Report
from pindown.equivalence.comparison.witness_search import search
from pindown.network import ReluNetwork
from pindown.parallel import few_threads, n_workers
from pindown.rounding import add_up
from pindown.visible_text import printable

Model: TypeAlias = ReluNetwork | str | PathLike[str] | Any

# The first look for a witness: most different pairs show it at once.
_FIRST_SEARCH_SECONDS = 0.3
# Once networks are proved different, how long to look for a finite upper end.
_CLOSING_SECONDS = 0.5


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
    n_jobs: int | None = None,
    activation: str | None = None,
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
        a: A network, the path of a model file, a torch module or a fitted scikit-learn MLP.
        b: Another with as many inputs and outputs; depth and widths may differ.
        box: The inputs that matter; None for all of :math:`\mathbb{R}^d`, in the relative sense.
        tol: The networks count as the same if the gap is at most this.
        budget: Seconds; when they are over, what was proved until then is returned.
        seed: Chooses the points of the searches.
        labels: Ask as well whether the classes they choose ever differ by more than this margin.
        progress: Called with a message, steps done and steps in all.
        n_jobs: Workers for branch and bound, -1 for all cores; None: as an enclosing
            :func:`pindown.parallel.workers` says, else one.
        activation: ``"relu"``, if a path is that of a state dict: that is what lies between its layers,
            which the file does not say.

    Returns:
        The verdict with its proved interval. Ctrl-C returns what was proved so far.

    Raises:
        ValueError: If input or output sizes differ, or the box, ``tol``, ``budget`` or ``n_jobs`` make
            no sense.

    Example:
        The same function, units in another order and rescaled:

        >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 3]), ([[1.0, 2.0]], [0])])
        >>> b = ReluNetwork.from_layers([([[-4.0], [1.0]], [12, 0]), ([[0.5, 1.0]], [0])])
        >>> answer = diff(a, b)
        >>> answer.verdict, answer.gap_upper, answer.proof
        ('same', 0.0, 'units paired: equal')

    Phuong and Lampert 2020 (which networks are equal only by permuting and rescaling units).
    """
    from pindown.io.any_model import as_network

    began = time.monotonic()
    first, second = (as_network(model, "diff", activation) for model in (a, b))
    domain = _checked(first, second, box, tol, budget, labels, seed)
    n_workers(n_jobs)  # complains now, not after minutes
    run = Comparison(first, second, domain, float(tol), began + budget, seed, progress, n_jobs, began)
    interrupted, answer = False, None
    try:
        with few_threads(first), few_threads(second):
            _compare(run)
        if labels is not None:
            answer = compare_labels(first, second, domain, labels, run.state, run.deadline, seed, n_jobs)
    except KeyboardInterrupt:
        interrupted = True
    state = run.state
    if labels is not None and answer is None:
        answer = unsearched(labels, state)
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
        by_programs=run.by_programs or state.by_programs,
    )


def _name(model: Model, otherwise: str) -> str:
    return printable(Path(model).name) if isinstance(model, (str, PathLike)) else otherwise


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


def _compare(run: Comparison) -> None:
    """Narrow the interval until it decides."""
    if run.first == run.second:
        run.take("identical weights", upper=0.0)
        return
    budget = min(_FIRST_SEARCH_SECONDS, 0.1 * run.left)
    found = search(run.first, run.second, run.box, target=run.tol, budget=budget, seed=run.seed)
    if found.gap > 0:
        run.take("search", point=found.point, lower=found.gap)
    # What holds for all inputs is found by looking at the weights; what holds on the box takes proofs.
    pair = paired(run, Pair(run.first, run.second))
    for domain in (None,) if run.box is None else (None, run.box):
        if run.goes_on:
            pair, settled = smaller(run, pair, domain)
            pair = paired(run, pair)
        if run.goes_on:
            paired(run, settled())
    if run.goes_on:
        _narrow(run, pair)
    else:
        _close(run, pair)


def _narrow(run: Comparison, pair: Pair) -> None:
    """Bound the gap by all that works on arbitrary networks."""
    if pair.slack < run.tol or pair.slack == 0.0:
        _narrow_pair(run, pair)
    if pair.slack > 0.0 and run.goes_on:  # the reduced networks cannot decide: those given may
        _narrow_pair(run, Pair(run.first, run.second))


def _narrow_pair(run: Comparison, pair: Pair) -> None:
    tried: Array | None = None

    def better(state: GapState) -> None:
        nonlocal tried
        method = state.history[-1].method
        if state.witness is not None and state.witness is not tried:
            tried = state.witness
            run.take(method, point=tried)
        run.take(method, upper=float(add_up(state.upper, pair.slack)))

    tol = max(0.0, run.tol - pair.slack)
    how: dict[str, Any] = {"seed": run.seed, "progress": better, "n_jobs": run.n_jobs}
    narrow(pair.a, pair.b, run.box, tol=tol, deadline=run.deadline, **how)


def _close(run: Comparison, pair: Pair) -> None:
    """Give a pair that is proved different a finite upper end too, if that is cheap."""
    if isfinite(run.state.upper) or not run.left:
        return
    deadline = time.monotonic() + min(_CLOSING_SECONDS, run.left)
    state = narrow(pair.a, pair.b, run.box, precision=inf, deadline=deadline, seed=run.seed, n_jobs=1)
    if state.history:
        run.take(state.history[-1].method, upper=float(add_up(state.upper, pair.slack)))


def _proof(run: Comparison) -> str:
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
