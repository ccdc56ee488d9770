"""What comparing two networks returns."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from os import PathLike
from typing import Literal, TypeAlias

from pindown.affine import Array
from pindown.atomic_files import written
from pindown.box import Box
from pindown.equivalence.comparison.bracket import TRUSTED, Progress
from pindown.equivalence.comparison.graphs import LayerBlame
from pindown.equivalence.comparison.layer_pairs import LayerPairs
from pindown.equivalence.comparison.rows import RowDiff
from pindown.evidence import Kind
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.text import card, interval_text, rounded_down, rounded_up

Verdict: TypeAlias = Literal["same", "different", "undecided"]


@dataclass(frozen=True)
class LayerDifference:
    """How one layer of the second network differs from its counterpart, units paired.

    Attributes:
        layer: Number of the layer, from 1.
        units: Its units (outputs, for the last layer).
        moved: Units that stand at another place.
        rescaled: Units that are another multiple.
        changed: Units whose weights differ after that.
        largest: The largest difference of two paired rows, relative to the row's length.
    """

    layer: int
    units: int
    moved: int
    rescaled: int
    changed: int
    largest: float


@dataclass(frozen=True, eq=False)
class LabelDiff:
    r"""Whether two classifiers ever disagree by more than a margin.

    The disagreement at x is :math:`\min(a_i - a_j,\; b_j - b_i)` for the classes i that a and j that b
    chooses: how sure both are of different answers; 0 where they agree.

    Attributes:
        verdict: ``"same"`` if it is proved at most the margin everywhere, ``"different"`` if it is
            larger at ``witness``, else ``"undecided"``.
        margin: The margin asked about.
        lower: The disagreement at ``witness``, rounded down.
        upper: A proved upper bound.
        witness: An input, or None.
        labels: The classes a and b choose there.
    """

    verdict: Verdict
    margin: float
    lower: float
    upper: float
    witness: Array | None
    labels: tuple[int, int] | None

    def __str__(self) -> str:
        interval = f"largest disagreement in {interval_text(self.lower, self.upper)}"
        if self.verdict == "same":
            return f"labels never differ by more than {self.margin:g} ({interval})"
        if self.verdict == "different" and self.labels is not None:
            i, j = self.labels
            return f"labels differ: {i} against {j} at the witness ({interval})"
        return f"labels undecided at margin {self.margin:g} ({interval})"


@dataclass(frozen=True, eq=False, repr=False)
class Diff:
    r"""The proved interval for the largest gap of two networks.

    ``gap_lower <= sup_x max_k |a_k(x) - b_k(x)| <= gap_upper`` over the box; without a box the gap at
    x is divided by :math:`1 + \|x\|_2` and x is any input. Both ends are theorems about the functions
    that the float64 weights define in real arithmetic.

    Attributes:
        verdict: ``"same"`` if ``gap_upper <= allowed``, ``"different"`` if ``gap_lower > allowed``, else
            ``"undecided"``.
        gap_lower: The gap at ``witness``, rounded down.
        gap_upper: Proved upper bound, rounded up.
        witness: An input at which the gap is at least ``gap_lower``, or None.
        proof: In a few words, what proved the verdict.
        tol: The gap that is allowed whatever the size of outputs.
        box: The inputs, or None for all of them.
        first: The first network; the graph of operations where a model has no exact normal form.
        second: The second.
        layers: What differs where, if the units could be paired; else empty.
        steps: What was simplified before, in words.
        history: How the interval narrowed: seconds, lower and upper end, method.
        labels: The answer about labels, if asked for.
        names: What to call the two networks: their files, if they were read from files.
        seconds: How long it took.
        interrupted: Whether Ctrl-C ended it.
        by_programs: Whether ``gap_upper`` may rest on mixed-integer programs.
        rtol: The gap that is allowed beside that, in shares of ``scale``.
        scale: The largest absolute output that was met: on the data, else on samples of the box, else 0.
        rows: On the rows of data, on new rows like them, and around each; None without data.
        blame: With data, where both graphs are of one structure: the layers that changed, ordered by
            what changing only them does on the rows.
        graph: What was added, removed, fused and retyped from the first graph to the second, in words.
        pairs: The layers of the two graphs that agree to rounding, whatever the gap is.
        certificate: The file that a proof was written to; empty if none was.
        certificate_note: Why none was written although it was asked for, or what it does not prove.
        tolerances: What is allowed of each output, if not the same of all; the verdict is about these.
    """

    verdict: Verdict
    gap_lower: float
    gap_upper: float
    witness: Array | None
    proof: str
    tol: float
    box: Box | None
    first: ReluNetwork | Model
    second: ReluNetwork | Model
    layers: tuple[LayerDifference, ...] = ()
    steps: tuple[str, ...] = ()
    history: tuple[Progress, ...] = ()
    labels: LabelDiff | None = None
    names: tuple[str, str] = ("the first network", "the second network")
    seconds: float = 0.0
    interrupted: bool = False
    by_programs: bool = False
    rtol: float = 0.0
    scale: float = 0.0
    rows: RowDiff | None = None
    blame: tuple[LayerBlame, ...] = ()
    graph: tuple[str, ...] = ()
    pairs: LayerPairs | None = None
    certificate: str = ""
    certificate_note: str = ""
    tolerances: tuple[float, ...] = ()

    @property
    def allowed(self) -> float:
        """The largest gap of any output that counts as the same: ``tol + rtol * scale``."""
        return max(self.tolerances, default=self.tol + self.rtol * self.scale)

    @property
    def flip_rate(self) -> float | None:
        """Upper confidence limit for the share of flips among new rows like the data; None without."""
        return None if self.rows is None else self.rows.flip_rate

    @property
    def gap_quantile(self) -> float | None:
        """Upper confidence limit for the 95 % quantile of the gap on new rows; None without data."""
        return None if self.rows is None else self.rows.gap_quantile

    @property
    def answer(self) -> Verdict:
        """The verdict on the question that was asked: about labels if those were, else ``verdict``."""
        return self.verdict if self.labels is None else self.labels.verdict

    @property
    def kind(self) -> Kind:
        """How it is known: ``"exact"``, both ends of the interval are proved."""
        return "exact"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the readers of the two models took for granted, and the solver where it proved something.

        Empty if the files say themselves which function they are (a state dict does not) and no
        mixed-integer program had to be solved.
        """
        first, second = self.first.notes, self.second.notes
        both = [note for note in first if note in second]
        return (
            *(f"Both: {note}" for note in both),
            *(f"{self.names[0]}: {note}" for note in first if note not in both),
            *(f"{self.names[1]}: {note}" for note in second if note not in both),
            *[TRUSTED] * self.by_programs,
        )

    @property
    def same(self) -> bool:
        """Whether the networks are proved to be the same to the tolerance."""
        return self.verdict == "same"

    @property
    def domain(self) -> str:
        """The inputs that were considered, in words."""
        if self.box is None:
            return "all inputs, relative to 1 + |x|"
        low, high = self.box.lower, self.box.upper
        if (low == low[0]).all() and (high == high[0]).all():
            return f"[{low[0]:g}, {high[0]:g}]^{self.box.dim}"
        return f"a box of {self.box.dim} dimensions"

    @property
    def _each(self) -> str:
        return f" ({min(self.tolerances):g} and more, by output)" if self.tolerances else ""

    _repr_html_ = card

    def __str__(self) -> str:
        upper = rounded_up(self.gap_upper, 4) if isfinite(self.gap_upper) else "unknown"
        text = (
            f"{self.verdict.upper()} at tolerance {self.allowed:g}{self._each}: largest gap between "
            f"{rounded_down(self.gap_lower, 4)} and {upper} on {self.domain} ({self.proof})"
        )
        if self.labels is not None:
            text = f"{self.answer.upper()}: {self.labels}; values {text}"
        if self.rows is not None:
            text = f"{self.rows}; {text}"
        return ". ".join([text, *self.assumptions])

    __repr__ = __str__

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the comparison as one self-contained page, and write it if a path is given."""
        from pindown.report.equivalence import render_diff

        return written(render_diff(self), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the comparison as JSON, and write it if a path is given."""
        from pindown.report.equivalence import render_diff_json

        return written(render_diff_json(self), path)


def verdict_of(lower: float, upper: float, tol: float) -> Verdict:
    """Return what an interval says about a tolerance.

    >>> verdict_of(0.0, 1e-9, 1e-5), verdict_of(0.1, inf, 1e-5), verdict_of(0.0, 0.1, 1e-5)
    ('same', 'different', 'undecided')
    """
    if upper <= tol < inf:
        return "same"
    return "different" if lower > tol else "undecided"
