"""Which symmetries of images, and of sets, the network keeps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.affine import Array, stored_entries
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.pictures import StackedBars, drawable
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    FRESH_NETWORKS,
    KEPT_SHARE,
    MAX_SYMMETRY_ROWS,
    MIN_SYMMETRY_ROWS,
    SECONDS_PER_WEIGHT_DRAWN,
    SHUFFLES,
    SYMMETRY_SHARE,
)
from pindown.findings.wording import number_text, percent
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.symmetry.families import Family
    from pindown.symmetry.measure.errors import SymmetryError


_FRESH = Assumption(
    "fresh networks have the same connections, shared as in convolutions, with Gaussian weights of "
    "variance 2 / inputs and no biases"
)


@dataclass(frozen=True)
class _Kept:
    """What is left of one symmetry."""

    name: str
    found: SymmetryError
    decisions: float | None  # share that stays

    @property
    def share(self) -> float:
        """Error in units of the spread of outputs."""
        return self.found.error / self.found.spread

    @property
    def untrained(self) -> float | None:
        """The same of fresh networks; None if they keep the symmetry by design."""
        return float(np.mean(self.found.untrained)) if self.found.untrained else None

    @property
    def row(self) -> tuple[str, float, float | None, float | None]:
        """A line of the table."""
        return self.name, self.share, self.untrained, self.decisions


@question(
    "SYM-02",
    "Symmetries of images",
    group="how far",
    needs=("images", "data"),
    about="For images: how much the outputs change when images are mirrored, turned by quarters or "
    "moved by a pixel, beside the distance between outputs of different images and beside fresh "
    "networks.",
    cost=(0.5, 2),
)
def image_symmetries(subject: Subject) -> Finding:
    """Measure exact symmetries of the pixel grid."""
    shape = subject.values.input_shape
    families = _image_families(*shape[-2:])
    kept = _measure(subject, "SYM-02", families)
    return _finding(
        kept,
        kept[-1],
        "images",
        "A network that keeps a symmetry answers a moved image as the image itself. Whether it should "
        "is for you to say: a mirrored cat is a cat, a mirrored 3 is no 3. What leaves an image on one "
        "side comes back on the other when it is moved.",
        "inputs are images whose last two axes are height and width",
    )


@question(
    "SYM-03",
    "Order of a set",
    group="how far",
    needs=("data",),
    about="For inputs that list things, each described by some numbers: how much the outputs change "
    "when the things are listed in another order.",
    cost=(0.5, 2),
)
def set_symmetry(subject: Subject) -> Finding:
    """Measure what another order of the members does."""
    shape = subject.values.input_shape
    if len(shape) != 2 or shape[0] < 2:
        raise NotApplicable(f"the inputs are no sets: their shape is {tuple(shape)}")
    if shape[1] == 1:
        raise NotApplicable(f"inputs of shape {tuple(shape)} are rather vectors than sets")
    if shape[0] == shape[1]:
        raise NotApplicable(f"inputs of shape {tuple(shape)} are rather images than sets")
    from pindown.symmetry.actions.permutations import set_shuffles
    from pindown.symmetry.families import Transformations

    shuffles = set_shuffles(shape[0], SHUFFLES, subject.seed)
    swap = Transformations("a swap of two", (0,), shuffles.moves[:1])
    kept = _measure(subject, "SYM-03", {"the first two swapped": swap, "shuffled": shuffles})
    return _finding(
        kept,
        kept[-1],
        "sets",
        "The order in which the members of a set are listed means nothing; a network that notices it "
        "must learn every order by itself. Pooling over members, or averaging over orders, removes it.",
        "the first axis of an input lists things whose order means nothing",
    )


def _image_families(height: int, width: int) -> dict[str, Family]:
    from pindown.symmetry.actions.images import image_reflection, image_rotations
    from pindown.symmetry.families import Transformations

    steps = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
    shifts = Transformations(
        "shifts by a pixel",
        tuple(steps),
        tuple(partial(np.roll, shift=step, axis=(-2, -1)) for step in steps.values()),
    )
    turns = {"turned by quarters": image_rotations()} if height == width else {}
    return {
        "mirrored left-right": image_reflection(),
        "mirrored up-down": image_reflection("up-down"),
        **turns,
        "moved by a pixel": shifts,
    }


def _measure(subject: Subject, code: str, families: dict[str, Family]) -> list[_Kept]:
    from pindown.symmetry.measure.errors import invariance
    from pindown.symmetry.measure.models import untrained_copy

    model = subject.values
    fresh = FRESH_NETWORKS if isinstance(model, ReluNetwork) else 0
    passes = sum(family.order + 1 for family in families.values()) * (fresh + 2)
    row = passes * subject.seconds_per_row()
    # Two sizes and none between: the answer is to depend on the clock as little as can be.
    fits = row * MAX_SYMMETRY_ROWS <= SYMMETRY_SHARE * subject.turn.left
    X = _rows(subject, code, MAX_SYMMETRY_ROWS if fits else MIN_SYMMETRY_ROWS)
    drawn = sum(stored_entries(a.weight) for a in model.layers) if isinstance(model, ReluNetwork) else 0
    subject.require(row * len(X), measured=True)
    subject.require(SECONDS_PER_WEIGHT_DRAWN * drawn * fresh)
    rng = subject.rng(code)
    copies = [untrained_copy(model, rng) for _ in range(fresh)]
    kept = []
    for name, family in families.items():
        found = invariance(model, family, X, copies=copies)
        if found.spread == 0.0:
            raise NotApplicable("the outputs of all rows are equal: there is no change to compare with")
        kept.append(_Kept(name, found, _decisions(model, family, X)))
    return kept


def _rows(subject: Subject, code: str, most: int) -> Array:
    sample = subject.data
    if sample is None or len(sample) < 2:
        raise NotApplicable("fewer than two rows of data were given")
    subject.require_moderate()
    subject.observe(sample)  # refuses networks that overflow on the data
    rows = np.sort(subject.rng(code).permutation(len(sample))[:most])
    return np.asarray(sample.X[rows].reshape(len(rows), *subject.values.input_shape))


def _decisions(net: Any, family: Family, X: Array) -> float | None:
    """Return the share of decisions that stay, if there are decisions."""
    if net.out_features == 1:
        return None
    from pindown.symmetry.measure.labels import label_symmetry

    return label_symmetry(net, family, X).agreement


def _finding(kept: list[_Kept], chosen: _Kept, noun: str, reading: str, assumed: str) -> Finding:
    exact = [item.name for item in kept if item.share <= KEPT_SHARE]
    told = ", ".join(f"{item.name} {_share_text(item.share)}" for item in kept)
    found = chosen.found
    bars = tuple((item.share,) for item in kept)
    return Finding(
        verdict=f"change of outputs, in units of that between {noun}: {told}"
        + (f"; kept up to rounding on these rows: {', '.join(exact)}" if exact else ""),
        number=Quantity(
            chosen.share,
            "estimate",
            standard_error=found.standard_error / found.spread,
            n=found.n,
            label=f"change of outputs when {chosen.name}, per distance between {noun}",
        ),
        hypotheses=(
            Assumption(assumed),
            *([_FRESH] if any(item.found.untrained for item in kept) else []),
        ),
        reading=reading + _decision_words(kept),
        scale=_scale(chosen, noun),
        figure=StackedBars(
            "Change of outputs under each transformation",
            tuple(item.name for item in kept),
            ("change",),
            bars,
            f"change, per distance between {noun}",
        )
        if drawable(value for (value,) in bars)
        else None,
        table=Table(
            f"Change of outputs, per distance between outputs of different {noun}",
            ("transformation", "change", "fresh networks", "decisions kept"),
            tuple(item.row for item in kept),
        ),
    )


def _decision_words(kept: list[_Kept]) -> str:
    shares = [(item.decisions, item.name) for item in kept if item.decisions is not None]
    if not shares:
        return ""
    worst, name = min(shares)
    if worst == 1.0:
        return " No decision changes on these rows."
    return f" At worst, {name}, {percent(worst)} of the decisions stay."


def _scale(chosen: _Kept, noun: str) -> str:
    words = f"0 is an exact symmetry; 1 is as much as from one of the {noun} to another."
    if chosen.untrained is None:
        return words
    return f"{words} Fresh networks of this shape show {_share_text(chosen.untrained)}."


def _share_text(share: float) -> str:
    """Return three digits; 0 only for what is rounding."""
    return "0" if share <= KEPT_SHARE else number_text(share)
