"""Signatures that do not change when an image is lit differently, and a protocol that tests it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.signatures.projections import as_samples
from pindown.symmetry.tuning import BUMP_WIDTH, BUMPS, GONE_WIDTHS
from pindown.validation import choice, integer, positive


def illuminate(images: ArrayLike, field: ArrayLike, zetas: ArrayLike) -> Array:
    r"""Light images along a family of multiplicative fields.

    .. math:: I_\zeta(p) = e^{\zeta h(p)} I(p), \qquad \zeta \in \mathbb{R}

    Fields compose by adding :math:`\zeta`; every one has an inverse, which the half line
    :math:`\zeta \ge 0` lacks.

    Args:
        images: Positive images as vectors, (n, d) or (d,).
        field: The field h, (d,).
        zetas: Strengths of the light, (Z,).

    Returns:
        (n, Z, d).

    >>> illuminate([1.0, 2.0], [0.0, np.log(2.0)], [0.0, 1.0, -1.0])[0].tolist()
    [[1.0, 2.0], [1.0, 4.0], [1.0, 1.0]]

    Lecture course, section on illumination (domain corrected).
    """
    samples = as_samples(images, "images")
    h, z = np.asarray(field, dtype=float), np.atleast_1d(np.asarray(zetas, dtype=float))
    if h.shape != samples.shape[1:] or not np.isfinite(h).all():
        raise ValueError(f"field must be {samples.shape[1]} finite numbers; got shape {h.shape}.")
    if z.ndim != 1 or z.size == 0 or not np.isfinite(z).all():
        raise ValueError(f"zetas must be finite numbers, (Z,); got shape {z.shape}.")
    with np.errstate(over="ignore"):
        lit = np.exp(z[:, None] * h) * samples[:, None]
    if not np.isfinite(lit).all():
        raise ValueError("this much light overflows; use a smaller window of zeta.")
    return lit


def interior_centres(
    images: ArrayLike, template_orbits: ArrayLike, *, width: float = BUMP_WIDTH, count: int = BUMPS
) -> Array:
    r"""Place bumps where projections go in the window's interior and are far from at its ends.

    Args:
        images: Images as vectors, (n, d).
        template_orbits: Each template under all lights, in order of :math:`\zeta`, (K, Z, d).
        width: Width s of the bumps.
        count: Bumps B for each template.

    Returns:
        Centres in the logarithm of a projection, (K, B).

    Raises:
        ValueError: If the window is too short: projections at its ends are those of its interior.

    >>> lit = illuminate([[1.0, 1.0]], [1.0, -1.0], np.linspace(-8, 8, 161))
    >>> interior_centres([[1.0, 2.0]], lit, count=3).shape
    (1, 3)

    Lecture course, section on illumination (pooling corrected).
    """
    logs = np.log(_projections_on_lights(images, template_orbits))
    integer("count", count)
    positive("width", width)
    # Logarithms of sums of exponentials are convex along the window. In a valley only the high ends have
    # to be avoided; where all of the field has one sign the least projection is an end, too.
    ends = np.minimum(logs[:, :, 0], logs[:, :, -1])
    least = logs.min(axis=2)
    at_end = np.where(least < ends, -np.inf, ends + GONE_WIDTHS * width).max(axis=0)
    low = np.where(np.isfinite(at_end), at_end, least.min(axis=0))
    tops = np.where(least < ends, ends, np.maximum(logs[:, :, 0], logs[:, :, -1]))
    high = tops.min(axis=0) - GONE_WIDTHS * width
    if not (high > low).all():
        raise ValueError(
            "the window of lights is too short: projections at its ends lie within the bumps' reach of "
            "its interior; use more extreme lights or narrower bumps."
        )
    return low[:, None] + (high - low)[:, None] * (np.arange(count) + 0.5) / count


def illumination_signature(
    images: ArrayLike, template_orbits: ArrayLike, centres: ArrayLike, *, width: float = BUMP_WIDTH
) -> Array:
    r"""Pool bumps in the logarithm of projections on templates under all lights.

    .. math:: \mu_{kb}(I) = \sum_\zeta
              \exp\left(-\frac{(\ln \langle I, t_\zeta^k \rangle - b)^2}{2 s^2}\right)

    Light moves from image to template,
    :math:`\langle I_\zeta, t_{\zeta'} \rangle = \langle I, t_{\zeta + \zeta'} \rangle`, so the sum over
    all of a long window does not change, as long as the bumps vanish at its ends.
    Powers in place of bumps grow there: see :func:`illumination_moments`.

    Args:
        images: Positive images as vectors, (n, d).
        template_orbits: Each template under equally spaced lights, (K, Z, d); see :func:`illuminate`.
        centres: b, (K, B) or (B,); see :func:`interior_centres`.
        width: Width s of the bumps.

    Returns:
        (n, K * B).

    >>> field, window = [1.0, -1.0, 0.5], np.linspace(-12, 12, 481)
    >>> family = illuminate([[1.0, 1.0, 2.0]], field, window)
    >>> dim, bright = illuminate([2.0, 1.0, 1.0], field, [-1.0, 1.0])[0]
    >>> centres = interior_centres([dim, bright], family)
    >>> first, second = illumination_signature([dim, bright], family, centres)
    >>> bool(np.abs(first - second).max() < 1e-9)
    True

    Lecture course, section on illumination (pooling corrected).
    """
    logs = np.log(_projections_on_lights(images, template_orbits))
    b = np.asarray(centres, dtype=float)
    if b.ndim not in {1, 2} or b.size == 0 or not np.isfinite(b).all() or not 0 < width < np.inf:
        raise ValueError("centres must be finite numbers, (B,) or (K, B), and width positive.")
    b = np.broadcast_to(b, (logs.shape[1], b.shape[-1]))
    out = np.empty((*logs.shape[:2], b.shape[1]))
    for j in range(b.shape[1]):
        out[:, :, j] = np.exp(-((logs - b[None, :, j, None]) ** 2) / (2 * width**2)).sum(axis=2)
    return out.reshape(len(out), -1)


def illumination_moments(images: ArrayLike, template_orbits: ArrayLike, n_moments: int) -> Array:
    r"""Sum powers of projections over the window of lights, as printed; kept for comparison.

    .. math:: \mu_n^k(I) = \sum_\zeta \langle I, t_\zeta^k \rangle^n

    Multiplication is not unitary: projections grow without bound along the window, its ends decide the
    sum, and it is *not* invariant.

    Args:
        images: Positive images, (n, d).
        template_orbits: Each template under all lights, (K, Z, d).
        n_moments: The highest power N.

    Returns:
        Logarithms of the sums, (n, K * N), since the sums themselves overflow.

    >>> family = illuminate([[1.0, 1.0]], [1.0, -1.0], [-1.0, 0.0, 1.0])
    >>> np.exp(illumination_moments([[1.0, 0.0]], family, 1)).round(4).item()
    4.0862

    Lecture course, section on illumination.
    """
    integer("n_moments", n_moments)
    logs = np.log(_projections_on_lights(images, template_orbits))
    sums = [np.logaddexp.reduce(n * logs, axis=2) for n in range(1, n_moments + 1)]
    return np.stack(sums, axis=2).reshape(len(logs), -1)


def _projections_on_lights(images: ArrayLike, template_orbits: ArrayLike) -> Array:
    """Positive projections (n, K, Z), or a refusal."""
    samples, orbits = as_samples(images, "images"), np.asarray(template_orbits, dtype=float)
    if orbits.ndim != 3 or orbits.shape[2] != samples.shape[1] or 0 in orbits.shape:
        raise ValueError(
            f"template_orbits must be (K, Z, {samples.shape[1]}), each template under all lights; got "
            f"shape {orbits.shape}."
        )
    products = np.einsum("nd,kzd->nkz", samples, orbits)
    if not (products > 0).all() or not np.isfinite(products).all():
        raise ValueError("projections must be positive: use images and templates of positive values.")
    return products


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
    kind: Kind = "estimate"

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
        field: The field h, (d,).
        window: Lights of the templates, equally spaced.
        lights: Lights of the images.
        readout: ``"bumps"`` (:func:`illumination_signature`) or ``"moments"`` (as printed).
        width: Width s of the bumps.
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
    choice("readout", readout, ("bumps", "moments"))
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
    logs = np.log(_projections_on_lights(images, family))
    low, high = logs.min(axis=(0, 2)) - width, logs.max(axis=(0, 2)) + width
    return low[:, None] + (high - low)[:, None] * (np.arange(BUMPS) + 0.5) / BUMPS


def _within_between(signatures: Array) -> tuple[float, float]:
    """Mean squared distances within and between images; standard light comes first."""
    reference = signatures[:, :1]
    within = float(((signatures[:, 1:] - reference) ** 2).sum(axis=2).mean())
    apart = ((reference - reference[:, 0]) ** 2).sum(axis=2)
    between = float(apart[~np.eye(len(apart), dtype=bool)].mean())
    return within, between
