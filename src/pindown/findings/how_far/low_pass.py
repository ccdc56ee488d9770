"""How much of its decisions is left when images lose their fine detail, for any model."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.how_far.unfamiliar_inputs import evaluated_some
from pindown.findings.pictures import Curves
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import predicted_classes
from pindown.findings.subject import Subject
from pindown.findings.tuning import LOW_PASS_IMAGES, LOW_PASS_KEPT, LOW_PASS_SHARE, LOW_PASS_STEPS
from pindown.findings.wording import number_text, percent


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
