"""Which frequencies of its input images a model needs, and what is left without the fine ones."""

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
from pindown.findings.how_far.unfamiliar_inputs import evaluated_some
from pindown.findings.pictures import Curves
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Sample, predicted_classes
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    BATCH_SECONDS_PER_OPERATION,
    ENOUGH_MASK_STEPS,
    LOW_PASS_IMAGES,
    LOW_PASS_KEPT,
    LOW_PASS_SHARE,
    LOW_PASS_STEPS,
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


@question(
    "FRQ-02",
    "Without fine detail",
    group="how far",
    needs=("images", "data"),
    about="For images: how many decisions stay when all frequencies above a limit are taken out, for "
    "several limits.",
    cost=(0.3, 2),
)
def without_fine_detail(subject: Subject) -> Finding:
    """Filter images by low-pass filters and compare decisions."""
    assert subject.data is not None
    model = subject.values
    if model.out_features == 1 and subject.labelled is None:
        raise NotApplicable("one output without labels may be no decision")
    sample = subject.data
    if sample.targets is not None and not sample.targets.is_classification:
        raise NotApplicable("the targets are real values and filters are about decisions")
    rows = subject.rng("FRQ-02").permutation(len(sample))[:LOW_PASS_IMAGES]
    X, shape = sample.X[rows], model.input_shape
    until = subject.turn.share(LOW_PASS_SHARE)
    whole = predicted_classes(evaluated_some(subject, X, until))
    limits = np.linspace(0.0, min(shape[-2:]) / 2, LOW_PASS_STEPS + 1)[1:-1]
    n = len(whole)
    kept: list[float] = []
    for limit in limits:
        if kept and until.passed:
            break
        seen = predicted_classes(evaluated_some(subject, low_passed(X[:n], shape, float(limit)), until))
        kept.append(float(np.mean(seen == whole[: len(seen)])))
    enough = [float(limit) for limit, share in zip(limits, kept, strict=False) if share >= LOW_PASS_KEPT]
    first = f"{number_text(enough[0])} cycles per image" if enough else "none of the limits tried"
    half, middle = kept[len(kept) // 2], number_text(float(limits[len(kept) // 2]))
    return Finding(
        verdict=f"{percent(LOW_PASS_KEPT)} of decisions stay from this limit on: {first}; "
        f"{percent(kept[0])} at {number_text(float(limits[0]))}",
        number=Quantity(half, "estimate", "%", n=n, standard_error=math.sqrt(half * (1 - half) / n),
                        label=f"of decisions kept below {middle} cycles"),
        hypotheses=(Assumption("inputs are images whose last two axes are height and width"),),
        reading="Images were blurred so that only waves of at most so many cycles across the image are "
        "left. A model that needs the finest ones decides by texture and noise, and changes its mind "
        "when images are resized or compressed.",
        scale=f"The finest waves of these images have {number_text(min(shape[-2:]) / 2)} cycles.",
        figure=Curves("Decisions kept, by the highest frequency that is left",
                      tuple(float(v) for v in limits[: len(kept)]), ("decisions kept",), (tuple(kept),),
                      "cycles per image", "share") if len(kept) > 1 else None,
        table=Table("Decisions kept", ("cycles per image", "share kept"),
                    tuple((float(limit), share) for limit, share in zip(limits, kept, strict=False))),
    )  # fmt: skip


def low_passed(X: Array, shape: tuple[int, ...], limit: float) -> Array:
    """Return rows whose images have no frequency above a limit, in cycles per image.

    >>> low_passed(np.array([[1.0, 0.0, 1.0, 0.0]]), (1, 4), 1.0)
    array([[0.5, 0.5, 0.5, 0.5]])
    """
    images = X.reshape(len(X), *shape)
    height, width = shape[-2:]
    radius: NDArray[np.float64] = np.hypot(
        np.fft.fftfreq(height)[:, None] * height, np.fft.rfftfreq(width) * width
    )
    spectrum = np.where(radius <= limit, np.fft.rfft2(images), 0.0)
    return np.asarray(np.fft.irfft2(spectrum, s=(height, width)).reshape(len(X), -1))
