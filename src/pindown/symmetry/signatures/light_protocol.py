"""Whether signatures ignore the light and tell images apart, with a control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.signatures.illumination import (
    BUMP_WIDTH,
    N_CENTRES,
    illuminate,
    illumination_moments,
    illumination_signature,
    interior_centres,
    projections_on_lights,
)
from pindown.symmetry.signatures.projections import as_samples


@dataclass(frozen=True)
class IlluminationReport:
    """How well signatures ignore light and tell images apart.

    Attributes:
        intra: Mean squared distance between an image's signature under standard and other light.
        inter: Mean squared distance between different images' signatures.
        ratio: Root of intra over inter: small is good, one is useless, infinite tells nothing apart.
        control: The same ratio with random images in place of each template's family.
        kind: ``"estimate"``, over the images given.
    """

    intra: float
    inter: float
    ratio: float
    control: float
    kind: str = "estimate"

    def __str__(self) -> str:
        return (
            f"within over between images: {self.ratio:.3g} (with a fake family {self.control:.3g}); "
            f"between images {self.inter:.3g}."
        )


def illumination_protocol(
    images: ArrayLike,
    templates: ArrayLike,
    field: ArrayLike,
    *,
    window: ArrayLike,
    lights: ArrayLike,
    readout: str = "bumps",
    width: float = BUMP_WIDTH,
    random_state: int = 0,
) -> IlluminationReport:
    """Measure invariance and selectivity of signatures, with a control.

    Images are seen under several lights; templates, other images, under a window of lights. The control
    replaces each template's family by as many random images that belong to no family.

    Args:
        images: Positive images under standard light, (n, d), at least two.
        templates: Other positive images, (K, d).
        field: h, (d,).
        window: Lights of the templates, equally spaced.
        lights: Lights of the images.
        readout: ``"bumps"`` (:func:`illumination_signature`) or ``"moments"`` (as printed).
        width: Of the bumps.
        random_state: Seed of the control's random images.

    >>> rng = np.random.default_rng(0)
    >>> faces, others = rng.uniform(0.5, 1.5, (4, 9)), rng.uniform(0.5, 1.5, (2, 9))
    >>> field, window = np.linspace(-1, 1, 9), np.linspace(-12, 12, 241)
    >>> report = illumination_protocol(faces, others, field, window=window, lights=[-1.0, 1.0])
    >>> report.ratio < 1e-6 < report.control
    True

    Lecture course, section on illumination: protocol.
    """
    samples, others = as_samples(images, "images"), as_samples(templates, "templates")
    if len(samples) < 2:
        raise ValueError("selectivity needs at least two images; got one.")
    if readout not in {"bumps", "moments"}:
        raise ValueError(f'readout must be "bumps" or "moments"; got {readout!r}.')
    lit = illuminate(samples, field, lights)
    everything = np.concatenate([samples[:, None], lit], axis=1).reshape(-1, samples.shape[1])
    families = illuminate(others, field, window)
    rng = np.random.default_rng(random_state)
    fake = rng.uniform(0.5, 1.5, families.shape) * others.mean(axis=1)[:, None, None]
    found = []
    for family in (families, fake):
        if readout == "bumps":
            inside = interior_centres if family is families else _all_centres
            centres = inside(everything, family, width=width)
            signatures = illumination_signature(everything, family, centres, width=width)
        else:
            signatures = illumination_moments(everything, family, 3)
        found.append(_within_between(signatures.reshape(len(samples), -1, signatures.shape[1])))
    (intra, inter), (fake_intra, fake_inter) = found
    return IlluminationReport(intra, inter, _ratio(intra, inter), _ratio(fake_intra, fake_inter))


def _ratio(within: float, between: float) -> float:
    """The root of a ratio; infinite if nothing is told apart."""
    return float(np.sqrt(within / between)) if between > 0 else np.inf


def _all_centres(images: Array, family: Array, *, width: float) -> Array:
    """Centres over the whole range of the projections: a fake family has no ends to avoid."""
    logs = np.log(projections_on_lights(images, family))
    low, high = logs.min(axis=(0, 2)) - width, logs.max(axis=(0, 2)) + width
    return low[:, None] + (high - low)[:, None] * (np.arange(N_CENTRES) + 0.5) / N_CENTRES


def _within_between(signatures: Array) -> tuple[float, float]:
    """Mean squared distances within and between images; standard light comes first."""
    reference = signatures[:, :1]
    within = float(((signatures[:, 1:] - reference) ** 2).sum(axis=2).mean())
    apart = ((reference - reference[:, 0]) ** 2).sum(axis=2)
    between = float(apart[~np.eye(len(apart), dtype=bool)].mean())
    return within, between
