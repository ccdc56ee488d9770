"""`diff`: every way to decide whether two networks are one function, in the order of their cost."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Affine, Array, dense
from pindown.box import Box, as_box
from pindown.deadline import Deadline, checked_budget
from pindown.equivalence.comparison._around_rows import RowRun, look_around
from pindown.equivalence.comparison._certificates import certified
from pindown.equivalence.comparison._climbing import Climb
from pindown.equivalence.comparison._graph_pairs import narrow_graphs
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.equivalence.comparison._labels import compare_labels, unsearched
from pindown.equivalence.comparison._on_data import answer_of, as_data, scale_of, tighten_rows
from pindown.equivalence.comparison._run import Run
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.comparison.graphs import LayerBlame, blame_of, graph_changes
from pindown.equivalence.comparison.methods import decide, require_fit
from pindown.equivalence.comparison.result import Diff, verdict_of
from pindown.equivalence.comparison.tolerances import (
    factors_of,
    gaps_at,
    of_outputs,
    scaled_model,
    scaled_network,
    scales_exactly,
)
from pindown.equivalence.tuning import (
    CERTIFICATE_SHARE,
    CLOSING_PRECISION,
    MAX_LOWERED_PRODUCTS,
    ROWS_SHARE,
)
from pindown.errors import UnsupportedModelError
from pindown.evidence import Bracket
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model
from pindown.model.operations.dense import Dense
from pindown.model.operations.moves import Move
from pindown.model.operations.relu import Relu
from pindown.network import ReluNetwork
from pindown.parallel import few_threads, n_workers
from pindown.progress import Report, silent
from pindown.text import printable
from pindown.validation import integer, number, positive
from pindown.verification.certificate_files import require_files

AnyModel: TypeAlias = Model | ReluNetwork | str | PathLike[str] | Any


def diff(
    a: AnyModel,
    b: AnyModel,
    *,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    data: ArrayLike | str | PathLike[str] | None = None,
    radius: float = 0.0,
    labels: bool | float | None = False,
    tol: float | ArrayLike = 1e-5,
    rtol: float | ArrayLike = 1e-5,
    precision: float | None = None,
    budget: float = 60.0,
    seed: int = 0,
    progress: Report | None = None,
    n_jobs: int | None = None,
    activation: str | None = None,
    certificate: str | PathLike[str] | None = None,
) -> Diff:
    r"""Decide whether two networks are the same function, with a proof, a witness or an interval.

    .. math::
        \mathrm{gap} = \sup_{x \in \mathrm{box}} \max_k |a_k(x) - b_k(x)|, \qquad
        \text{without a box} \quad
        \sup_{x \in \mathbb{R}^d} \max_k \frac{|a_k(x) - b_k(x)|}{1 + \|x\|_2}.

    In order: a short search for a witness; pairing the units of both and bounding what still differs;
    the same after every lossless reduction; then bounds on the difference of the two (linear
    relaxation, exact cells, mixed-integer programs, branch and bound) until the interval decides or
    the time is over. ``comparison/methods.py`` holds the tables. A witness is not the end: what is left
    of the budget narrows the interval from both sides, to ``precision``. Models that have no exact
    normal form are compared by linear bounds of both graphs.

    With data, the answer begins with them (``.rows``): flips and gaps on the rows, what follows for new
    rows of the same distribution, and for the ball around each row a proof that both choose the same
    class there, an input that shows the contrary, or neither; and proved bounds on the gap.

    Args:
        a: A model or network, the path of a model file, a torch module or a scikit-learn estimator.
        b: Another with as many inputs and outputs; depth and widths may differ.
        box: The inputs that matter; None for all of :math:`\mathbb{R}^d`, in the relative sense.
        data: Rows (n, d), or of the shape that the models take, or the path of a file with them:
            ``.npz``, ``.npy`` or ``.csv``.
        radius: Radius of the balls around rows, in the largest change of any input; cut to the box.
        labels: Whether to ask for classes as well: True, or a margin by which both must be sure of
            different ones. On the box, or for all inputs, and around each row of data.
        tol: The networks count as the same if the gap is at most ``tol + rtol * scale``; a number, or
            one for each output.
        rtol: The part of that which grows with ``scale``, the largest absolute output on the data, else
            on samples of the box, else 0; a number, or one for each output.
        precision: Once the networks are proved different, what is left of the budget narrows the
            interval until ``gap_upper - gap_lower <= precision * gap_upper``; None stands for 0.5, an
            upper end of at most twice the lower one (1.2 times in the first ten seconds), and 1 stops at
            a finite upper end.
        budget: Seconds; when they are over, what was proved until then is returned. More of them never
            make the answer worse: the sequence of steps does not depend on them.
        seed: Chooses the points of the searches.
        progress: Told what is being done and what is proved, the seconds spent, and those in all.
        n_jobs: Workers for branch and bound, -1 for all cores; None: as an enclosing
            :func:`pindown.parallel.workers` says, else one.
        activation: ``"relu"``, if a path is that of a state dict: that is what lies between its layers,
            which the file does not say.
        certificate: Where to write a proof that ``checker/pindown_check.py`` checks; models must be
            given as paths of ONNX files. What was found is then proved once more, by steps that a
            certificate has, in a part of the budget; ``certificate_note`` says what was not.

    Returns:
        The verdict with its proved interval. Ctrl-C returns what was proved so far.

    Raises:
        ValueError: If input or output sizes differ, or the box, data, radius, tolerances, ``budget`` or
            ``n_jobs`` make no sense, or a certificate is asked for and a model is no ONNX file.
        CertificateError: If the certificate's path holds something else.

    Example:
        The same function, units in another order and rescaled:

        >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 3]), ([[1.0, 2.0]], [0])])
        >>> b = ReluNetwork.from_layers([([[-4.0], [1.0]], [12, 0]), ([[0.5, 1.0]], [0])])
        >>> answer = diff(a, b)
        >>> answer.verdict, answer.gap_upper, answer.proof
        ('same', 0.0, 'units paired: equal')

        Classes at three inputs, and within 0.2 of each; the border is at 0 in one, at 0.1 in the other:

        >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
        >>> b = ReluNetwork.from_layers([([[1.0], [-1.0]], [-0.1, 0.1])])
        >>> answer = diff(a, b, data=[[-1.0], [0.05], [0.25]], radius=0.2, labels=True)
        >>> answer.rows.flipped.tolist(), answer.rows.same_label
        ([False, True, False], ('proved', 'refuted', 'refuted'))

    Phuong and Lampert 2020 (which networks are equal only by permuting and rescaling units).
    """
    budget = checked_budget(budget, zero=True)
    whole = deadline = Deadline.after(budget)
    if certificate is not None:
        require_files((a, b), certificate)
        deadline = whole.share(1.0 - CERTIFICATE_SHARE)
    given = _Given.of((a, b), activation)
    joint, margin = given.joint, _margin(labels)
    domain = _checked(joint, box, margin)
    X = None if data is None else as_data(data, joint.first, domain)
    size = positive("radius", radius, zero=True)
    own = of_outputs("tol", tol, joint.k), of_outputs("rtol", rtol, joint.k)
    closing = number("precision", CLOSING_PRECISION if precision is None else precision, 0.0, 1.0)
    seed = integer("seed", seed, least=0)
    n_workers(n_jobs)  # complains now, not after minutes
    scale = scale_of(joint, X, domain, seed) if own[1].any() or X is not None else 0.0
    allowed = own[0] + own[1] * scale
    compared = given.scaled(allowed)
    how: dict[str, Any] = {"seed": seed, "report": progress or silent}
    around = None
    if X is not None:
        share = deadline.share(ROWS_SHARE)
        around = RowRun(joint, X, size, domain, margin, share, given.dense_networks(), **how)
    run = compared.run(domain, deadline, tol=float(allowed.max()), n_jobs=n_jobs, **how)
    blame: tuple[LayerBlame, ...] = ()
    interrupted, answer = False, None
    try:
        with few_threads(joint.first), few_threads(joint.second):
            if around is not None:
                gap = np.abs(around.values[0] - around.values[1]).max(axis=1)
                blame = blame_of(*given.layered(), around.X, gap, deadline=around.deadline)
                look_around(around)
            if margin is None:
                run.close(closing)
            exact = _everywhere(run, compared, X)
            if margin is not None and exact:
                answer = compare_labels(run, margin, given.networks)
                run.close(closing)
                decide(run)
    except KeyboardInterrupt:
        interrupted = True
    if margin is not None and answer is None:
        answer = unsearched(margin, run.state)
    if around is not None:
        tighten_rows(around, run.state, domain)
    found = replace(
        _answer(run, given, compared, (*own, scale)),
        labels=answer,
        names=(_name(a, "the first network"), _name(b, "the second network")),
        interrupted=interrupted,
        rows=None if around is None else answer_of(around),
        blame=blame,
        graph=graph_changes(*given.graphs),
        pairs=given.joint.layers,
    )
    if certificate is None:
        return found
    networks = given.dense_networks()
    return certified(found, certificate, (a, b), given.graphs, joint, networks, whole)


@dataclass(frozen=True, eq=False)
class _Given:
    """Two models as they were given, and as graphs without a last softmax or sigmoid."""

    models: tuple[AnyModel, AnyModel]
    graphs: tuple[Model, Model]
    joint: Joint
    factors: Array | None = None

    @classmethod
    def of(cls, models: tuple[AnyModel, AnyModel], activation: str | None) -> _Given:
        from pindown.io.any_model import as_model

        first, second = (as_model(model, "diff", activation) for model in models)
        return cls(models, (first, second), Joint(first.scores(), second.scores()))

    def scaled(self, allowed: Array) -> _Given:
        """Return both with outputs multiplied so that one tolerance serves all; itself if it does."""
        factors = factors_of(allowed)
        if (factors == 1.0).all():
            return self
        with suppress(UnsupportedModelError):
            if not all(map(scales_exactly, self.networks)):
                factors = factors_of(allowed, bits=1)
        first, second = (scaled_model(model, factors) for model in (self.joint.first, self.joint.second))
        return replace(self, joint=Joint(first, second), factors=factors)

    def run(self, box: Box | None, deadline: Deadline, **how: Any) -> Run:
        """Return a comparison that has not begun."""
        climb = None if box is None else Climb(self.joint, box, how["seed"])
        return Run(self.joint.first, self.joint.second, box, deadline, climb=climb, **how)

    @cached_property
    def networks(self) -> tuple[ReluNetwork, ReluNetwork]:
        """Their exact normal forms.

        Raises:
            UnsupportedModelError: If one has none, or a large one.
        """
        products = max(graph.multiply_adds for graph in self.graphs)
        if products > MAX_LOWERED_PRODUCTS and not self._plain:
            raise UnsupportedModelError(
                f"written with ReLUs alone it would have about {products:,} weights."
            )
        first, second = (
            model if isinstance(model, ReluNetwork) else graph.relu_network()
            for model, graph in zip(self.models, self.graphs, strict=True)
        )
        if self.factors is not None:
            return scaled_network(first, self.factors), scaled_network(second, self.factors)
        return first, second

    def layered(self) -> tuple[Model, Model]:
        """Return graphs whose layers pair: dense ones stored alike, without what only moves entries."""
        networks = self.dense_networks()
        if networks is None:
            return self.joint.first, self.joint.second
        stored = [[Affine(dense(W), b) for W, b in net.layers] for net in networks]
        first, second = (model_of_network(ReluNetwork(tuple(layers))) for layers in stored)
        return first, second

    def dense_networks(self) -> tuple[ReluNetwork, ReluNetwork] | None:
        """Return their normal forms if these are the models themselves, layer by layer."""
        return self.networks if self._plain else None

    @property
    def _plain(self) -> bool:
        return all(
            isinstance(node.operation, (Dense, Relu, Move))
            for model in (self.joint.first, self.joint.second)
            for node in model.nodes
        )


def _everywhere(run: Run, given: _Given, X: Array | None) -> bool:
    """Narrow the interval on the box, or for all inputs; return whether exact normal forms are used."""
    if given.joint.layers.equal:
        identical = given.joint.first == given.joint.second
        name = "identical operations" if identical else "equal operations, written in another way"
        run.take(name, Bracket(0.0, 0.0))
        return False
    try:
        networks = given.networks
    except UnsupportedModelError as error:
        run.steps = (f"no exact normal form: {error}",)
        narrow_graphs(run, given.joint, X)
        return False
    run.compare(*networks)
    decide(run)
    return True


def _answer(run: Run, given: _Given, compared: _Given, tolerance: tuple[Array, Array, float]) -> Diff:
    """Return what was proved about the values."""
    state = run.state
    if state.lower > state.upper:
        raise RuntimeError(
            "two proofs about these networks contradict each other; this is a defect of pindown: "
            "please report it with both models."
        )
    tol, rtol, scale = tolerance
    allowed = tol + rtol * scale
    top, factors = float(allowed.max()), compared.factors
    verdict = verdict_of(state.lower, state.upper, top)
    first, second = run.first, run.second
    if factors is not None:  # what is proved of scaled outputs holds for them all the more from above
        first, second = given.networks if isinstance(run.first, ReluNetwork) else given.graphs
        gaps = (
            np.zeros(1)
            if state.witness is None
            else gaps_at(given.joint, state.witness, run.box is None)
        )
        if verdict == "different" and not (gaps > allowed).any():
            verdict = "undecided"
        steps = (step._replace(lower=step.lower / factors.max()) for step in state.history)
        state = replace(state, lower=float(gaps.max()), history=tuple(steps))
    return Diff(
        verdict=verdict,
        gap_lower=state.lower,
        gap_upper=state.upper,
        witness=state.witness,
        proof=_proof(run.state, top),
        tol=float(tol.max()),
        box=run.box,
        first=first,
        second=second,
        layers=run.layers,
        steps=run.steps,
        history=state.history,
        seconds=run.deadline.spent,
        by_programs=run.by_programs or state.by_programs,
        rtol=float(rtol.max()),
        scale=scale,
        tolerances=() if factors is None else tuple(allowed.tolist()),
    )


def _name(model: AnyModel, otherwise: str) -> str:
    return printable(Path(model).name) if isinstance(model, (str, PathLike)) else otherwise


def _margin(labels: bool | float | None) -> float | None:
    """Return the margin that is asked about; None if classes are not."""
    if labels is None or labels is False:
        return None
    return 0.0 if labels is True else positive("labels", labels, zero=True)


def _checked(
    joint: Joint, box: Box | tuple[ArrayLike, ArrayLike] | None, margin: float | None
) -> Box | None:
    """Return the box; complain in one line about what cannot be compared."""
    require_fit(joint.first, joint.second)
    if margin is not None and joint.k < 2:
        raise ValueError("labels need networks with two or more outputs; these have one.")
    return None if box is None else as_box(box, joint.first.in_features)


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
