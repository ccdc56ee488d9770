"""`diff`: every way to decide whether two networks are one function, in the order of their cost."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from pindown.box import Box, as_box
from pindown.deadline import Deadline, checked_budget
from pindown.equivalence.comparison._labels import compare_labels, unsearched
from pindown.equivalence.comparison._run import Run
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.comparison.methods import decide, require_fit
from pindown.equivalence.comparison.result import Diff, verdict_of
from pindown.network import ReluNetwork
from pindown.parallel import few_threads, n_workers
from pindown.progress import Report, silent
from pindown.text import printable
from pindown.validation import integer, positive

Model: TypeAlias = ReluNetwork | str | PathLike[str] | Any


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
    the time is over. ``comparison/methods.py`` holds the tables.

    Args:
        a: A network, the path of a model file, a torch module or a fitted scikit-learn MLP.
        b: Another with as many inputs and outputs; depth and widths may differ.
        box: The inputs that matter; None for all of :math:`\mathbb{R}^d`, in the relative sense.
        tol: The networks count as the same if the gap is at most this.
        budget: Seconds; when they are over, what was proved until then is returned.
        seed: Chooses the points of the searches.
        labels: Ask as well whether the classes they choose ever differ by more than this margin.
        progress: Told what is being done and what is proved, the seconds spent, and those in all.
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

    budget = checked_budget(budget, zero=True)
    deadline = Deadline.after(budget)
    first, second = (as_network(model, "diff", activation) for model in (a, b))
    domain = _checked(first, second, box, labels)
    n_workers(n_jobs)  # complains now, not after minutes
    run = Run(
        first,
        second,
        domain,
        deadline,
        tol=positive("tol", tol, zero=True),
        seed=integer("seed", seed, least=0),
        n_jobs=n_jobs,
        report=progress or silent,
    )
    interrupted, answer = False, None
    try:
        with few_threads(first), few_threads(second):
            decide(run)
        if labels is not None:
            answer = compare_labels(run, labels)
    except KeyboardInterrupt:
        interrupted = True
    if labels is not None and answer is None:
        answer = unsearched(labels, run.state)
    names = _name(a, "the first network"), _name(b, "the second network")
    return replace(_answer(run), labels=answer, names=names, interrupted=interrupted)


def _answer(run: Run) -> Diff:
    """Return what was proved about the values."""
    state, tol = run.state, run.tol or 0.0
    if state.lower > state.upper:
        raise RuntimeError(
            "two proofs about these networks contradict each other; this is a defect of pindown: "
            "please report it with both models."
        )
    return Diff(
        verdict=verdict_of(state.lower, state.upper, tol),
        gap_lower=state.lower,
        gap_upper=state.upper,
        witness=state.witness,
        proof=_proof(state, tol),
        tol=tol,
        box=run.box,
        first=run.first,
        second=run.second,
        layers=run.layers,
        steps=run.steps,
        history=state.history,
        seconds=run.deadline.spent,
        by_programs=run.by_programs or state.by_programs,
    )


def _name(model: Model, otherwise: str) -> str:
    return printable(Path(model).name) if isinstance(model, (str, PathLike)) else otherwise


def _checked(
    first: ReluNetwork,
    second: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike] | None,
    labels: float | None,
) -> Box | None:
    """Return the box; complain in one line about what cannot be compared."""
    require_fit(first, second)
    if labels is not None:
        positive("labels", labels, zero=True)
        if first.out_features < 2:
            raise ValueError("labels need networks with two or more outputs; these have one.")
    return None if box is None else as_box(box, first.in_features)


def _proof(state: GapState, tol: float) -> str:
    """Say in a few words what settled the verdict, or what was reached."""
    if not state.history:
        return "nothing could be proved in the time given"
    verdict = verdict_of(state.lower, state.upper, tol)
    if verdict == "different":
        step = next(step for step in state.history if step.lower > tol)
        return f"witness by {step.method}"
    if verdict == "same":
        step = next(step for step in state.history if step.upper <= tol)
        return step.method
    return f"best bounds so far by {state.history[-1].method}"
