"""Which frequencies of its input images the network needs."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, stored_entries
from pindown.findings.deadline import NotApplicable, OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.passes import Sample
from pindown.findings.pictures import Curves
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count, number_text, percent

if TYPE_CHECKING:
    from pindown.probes.fourier import FourierMask, MaskCheck

_STEPS, _BATCH, _RATE = 150, 64, 0.1
_MOST_IMAGES = 256  # half train the mask, half judge it
_FEWEST_IMAGES = 20  # with fewer the same images do both
_PASSES = 3 * _BATCH * _STEPS + 32 * _MOST_IMAGES  # rows sent forth or back, in all
_SECONDS_PER_OPERATION = 6e-10  # a multiply-add of small batches in float64, on a slow core
_SECONDS_TO_LOAD_TORCH = 8.0
_SHARE = 0.95  # of the right answers that the kept frequencies must give, on the first half
_ENOUGH_STEPS = 0.6  # of all: a mask that was cut short before is still open


@question(
    "FRQ-01",
    "Frequencies it needs",
    group="how far",
    needs=("images", "data"),
    about="For images: how few frequencies of the input the network needs to decide as before, beside "
    "what is left of its decisions behind all others and behind random ones.",
    cost=(6, 4),
)
def frequencies(subject: Subject) -> Finding:
    """Train a mask over frequencies and judge it on other images."""
    X, classes, named = _problem(subject)
    work = _SECONDS_PER_OPERATION * _PASSES * sum(stored_entries(a.weight) for a in subject.net.layers)
    subject.require(0.3 * work + (0.0 if "torch" in sys.modules else _SECONDS_TO_LOAD_TORCH))
    from pindown.probes.fourier import fourier_mask, mask_check, sufficient_frequencies

    half = len(X) // 2 if len(X) >= _FEWEST_IMAGES else len(X)
    found = fourier_mask(
        subject.net, X[:half], None if classes is None else classes[:half], steps=_STEPS,
        batch_size=_BATCH, rate=_RATE, seed=subject.seed, budget=0.8 * subject.deadline.left, verbose=0,
    )  # fmt: skip
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    if len(found.objective) < _ENOUGH_STEPS * _STEPS:
        raise OutOfTime
    first = None if classes is None else classes[:half]
    other = None if classes is None else classes[half:] if half < len(X) else classes
    kept = sufficient_frequencies(subject.net, found.mask, X[:half], first, share=_SHARE)
    fresh = X[half:] if half < len(X) else X
    check = mask_check(subject.net, kept.astype(float), fresh, other, seed=subject.seed)
    return _finding(found, check, X, named, half < len(X))


def _problem(subject: Subject) -> tuple[Array, NDArray[Any] | None, str]:
    """Return some images, their classes if there are, and what is counted."""
    shape = subject.net.input_shape
    sample = subject.labelled if subject.labelled is not None else subject.data
    if sample is None:
        raise NotApplicable("no data were given")
    if sample.targets is not None and not sample.targets.is_classification:
        raise NotApplicable("the targets are real values and masks are about decisions")
    if subject.net.out_features == 1 and sample.targets is None:
        raise NotApplicable("one output without labels may be no decision")
    subject.observe(sample)  # refuses networks that overflow on the data
    rows = _some_rows(subject, sample)
    images = sample.X[rows].reshape(len(rows), *shape)
    if sample.targets is None:
        return images, None, "decisions kept"
    return images, np.asarray(sample.targets.values[rows]), "accuracy"


def _some_rows(subject: Subject, sample: Sample) -> NDArray[np.intp]:
    rng = subject.rng("FRQ-01")
    return np.asarray(rng.permutation(len(sample))[:_MOST_IMAGES])


def _finding(found: FourierMask, check: MaskCheck, X: Array, named: str, fresh: bool) -> Finding:
    n, profile = check.n, found.profile(X)
    kept = round(check.frequencies)
    values = (
        ("all", check.n_frequencies, check.clean),
        ("kept by the mask", kept, check.kept),
        ("all others", check.n_frequencies - kept, check.complement),
        ("as many at random", kept, check.random),
    )
    drawn = np.isfinite(profile.energy).all()
    return Finding(
        verdict=f"{count(kept, 'frequency', 'frequencies')} of {check.n_frequencies:,} "
        f"({percent(kept / check.n_frequencies)}) give {named} {percent(check.kept)}; "
        f"the others {percent(check.complement)}, all {percent(check.clean)}",
        number=Quantity(
            check.kept, "estimate", "%", standard_error=math.sqrt(check.kept * (1 - check.kept) / n),
            n=n, label=f"{named} with the kept frequencies",
        ),
        hypotheses=(
            Hypothesis(
                "the mask was judged on images that it was not trained on",
                "checked" if fresh else "violated",
            ),
            Hypothesis("the mask is a minimum that was searched for; a smaller one may do"),
            Hypothesis("inputs are images whose last two axes are height and width"),
        ),
        reading="Images were filtered so that only some frequencies are left, the same for all images: "
        "the first in the order of a trained mask, as few as bisection found to keep 95% of the right "
        "answers on the images that trained it. "
        f"Their mean, weighted by the mask, is {number_text(round(profile.centroid, 2))} cycles per "
        "image. "
        "If few low frequencies suffice, the network decides by coarse shapes; if it needs high ones, "
        "fine detail and noise matter.",
        scale=f"As many frequencies drawn at random give {percent(check.random)}.",
        figure=Curves(
            "Weight of the mask and share of the images' energy, by frequency",
            tuple(profile.radius.tolist()),
            ("weight of the mask", "share of energy"),
            (tuple(profile.mask.tolist()), tuple(profile.energy.tolist())),
            "cycles per image", "weight or share",
        ) if drawn else None,
        table=Table("What is left of the decisions", ("frequencies", "how many", named), values),
    )  # fmt: skip
