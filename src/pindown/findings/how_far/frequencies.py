"""Which frequencies of its input images the network needs."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, stored_entries
from pindown.deadline import OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.pictures import Curves
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Sample
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    BATCH_SECONDS_PER_OPERATION,
    ENOUGH_MASK_STEPS,
    MASK_ACCURACY_SHARE,
    MASK_BATCH,
    MASK_PASSES,
    MASK_RATE,
    MASK_SHARE,
    MASK_STEPS,
    MAX_MASK_IMAGES,
    MIN_MASK_IMAGES,
    MIN_MASK_WORK,
    SECONDS_TO_LOAD_TORCH,
)
from pindown.findings.wording import count, number_text, percent

if TYPE_CHECKING:
    from pindown.probes.fourier import FourierMask, MaskCheck


@question(
    "FRQ-01",
    "Frequencies it needs",
    group="how far",
    needs=("images", "data", "exact"),
    about="For images: how few frequencies of the input the network needs to decide as before, beside "
    "what is left of its decisions behind all others and behind random ones.",
    cost=(6, 4),
)
def frequencies(subject: Subject) -> Finding:
    """Train a mask over frequencies and judge it on other images."""
    X, classes, named = _problem(subject)
    work = (
        BATCH_SECONDS_PER_OPERATION
        * MASK_PASSES
        * sum(stored_entries(a.weight) for a in subject.net.layers)
    )
    subject.require(MIN_MASK_WORK * work + (0.0 if "torch" in sys.modules else SECONDS_TO_LOAD_TORCH))
    from pindown.probes.fourier import fourier_mask, mask_check, sufficient_frequencies

    half = len(X) // 2 if len(X) >= MIN_MASK_IMAGES else len(X)
    found = fourier_mask(
        subject.net, X[:half], None if classes is None else classes[:half], steps=MASK_STEPS,
        batch_size=MASK_BATCH, rate=MASK_RATE, seed=subject.seed,
        budget=MASK_SHARE * subject.turn.left, verbose=0,
    )  # fmt: skip
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    if len(found.objective) < ENOUGH_MASK_STEPS * MASK_STEPS:
        raise OutOfTime
    first = None if classes is None else classes[:half]
    other = None if classes is None else classes[half:] if half < len(X) else classes
    kept = sufficient_frequencies(subject.net, found.mask, X[:half], first, share=MASK_ACCURACY_SHARE)
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
    return np.asarray(rng.permutation(len(sample))[:MAX_MASK_IMAGES])


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
            Assumption(
                "the mask was judged on images that it was not trained on",
                "checked" if fresh else "violated",
            ),
            Assumption("the mask is a minimum that was searched for; a smaller one may do"),
            Assumption("inputs are images whose last two axes are height and width"),
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
