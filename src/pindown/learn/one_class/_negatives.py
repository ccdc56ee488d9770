"""The floor of generic negatives: what is surely not a member, made from members without learning.

Vectors get noise at many scales, features exchanged between rows, and points between and beyond pairs.
Images get moved, turned, torn and mixed. Each negative knows its kind, so that a network can be asked
which kind it sees: naming the change is a harder lesson than noticing that there is one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample, interpolate

from pindown.learn.one_class.tuning import (
    EXTRAPOLATION,
    IMAGE_DAMAGE,
    MAX_NOISE,
    MAX_TURN,
    MIN_DROWNING_NOISE,
    MIN_NOISE,
    MIN_TURN,
    OTHER_DAMAGE,
    VECTOR_DAMAGE,
    WARP,
    WARP_GRID,
)

VECTOR_KINDS = 4
IMAGE_KINDS = 10


def _uniform(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator)


def _partners(x: Tensor, generator: torch.Generator) -> Tensor:
    return x[torch.randint(len(x), (len(x),), generator=generator)]


def _split(n: int, kinds: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(n, generator=generator) % kinds


def generic_negatives(
    x: Tensor, generator: torch.Generator, spacing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return a negative for each vector or image, and its kind; see those of both."""
    return image_negatives(x, generator) if x.dim() == 4 else vector_negatives(x, generator, spacing)


def vector_negatives(
    x: Tensor, generator: torch.Generator, spacing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return a negative for each row, and its kind (0 to 3).

    Args:
        x: Standardised rows, (n, d).
        generator: Where randomness comes from.
        spacing: Typical distance of neighbouring rows: noise of less would land on the data.

    Example:
        >>> fake, kind = vector_negatives(torch.zeros(8, 2), torch.Generator().manual_seed(0))
        >>> tuple(fake.shape), sorted(set(kind.tolist()))
        ((8, 2), [0, 1, 2, 3])
    """
    n, d = x.shape
    kind = _split(n, VECTOR_KINDS, generator)
    narrowest = min(max(spacing / math.sqrt(d), MIN_NOISE), MAX_NOISE / 2)
    spread = math.log(MAX_NOISE / narrowest)
    scale = narrowest * torch.exp(spread * _uniform(generator, n, 1))
    noise = torch.randn(n, d, generator=generator) * scale
    # Few features at a time, as often as all: an anomaly is often in one place.
    share = _uniform(generator, n, 1)
    touched = _uniform(generator, n, d) < share
    touched[torch.arange(n), torch.randint(d, (n,), generator=generator)] = True
    noisy = x + noise * torch.where((_uniform(generator, n, 1) < 0.5), touched.float(), torch.ones(n, d))
    exchanged = torch.where(_uniform(generator, n, d) < 0.5, x, _shuffled(x, generator))
    other = _partners(x, generator)
    place = _uniform(generator, n, 1) * EXTRAPOLATION
    beyond = x + place * (x - other)
    box = (2 * _uniform(generator, n, d) - 1) * MAX_NOISE * (0.3 + _uniform(generator, n, 1))
    made = torch.stack([noisy, exchanged, beyond, box])
    return made[kind, torch.arange(n)], kind


def _shuffled(x: Tensor, generator: torch.Generator) -> Tensor:
    """Return the rows with every feature drawn from a row of its own."""
    order = torch.randint(len(x), x.shape, generator=generator)
    return torch.gather(x, 0, order)


def image_negatives(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return a negative for each image, and its kind (0 to 9).

    Args:
        x: Images, (n, channels, height, width).
        generator: Where randomness comes from.
    """
    n = len(x)
    kind = _split(n, IMAGE_KINDS, generator)
    makers = (
        _quarter,
        _half_turn,
        _mirrored,
        _upside,
        _moved,
        _warped,
        _torn,
        _pasted,
        _mixed,
        _drowned,
    )
    out = x.clone()
    for number, maker in enumerate(makers):
        chosen = (kind == number).nonzero()[:, 0]
        if len(chosen):
            out[chosen] = maker(x[chosen], x, generator)
    return out, kind


def _quarter(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    turned = x if x.shape[2] == x.shape[3] else interpolate(x, size=2 * [min(x.shape[2:])])
    turned = torch.rot90(turned, 1 if _uniform(generator, 1).item() < 0.5 else 3, (2, 3))
    return turned if turned.shape == x.shape else interpolate(turned, size=x.shape[2:])


def _half_turn(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    return x.flip(2, 3)


def _mirrored(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    return x.flip(3)


def _upside(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    return x.flip(2)


def _moved(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    """Turn, shear and stretch."""
    n = len(x)
    sign = torch.where(_uniform(generator, n) < 0.5, -1.0, 1.0)
    angle = sign * (MIN_TURN + (MAX_TURN - MIN_TURN) * _uniform(generator, n))
    shear = _uniform(generator, n) - 0.5
    size = 0.8 + 0.6 * _uniform(generator, n)
    cos, sin, zero = torch.cos(angle) * size, torch.sin(angle) * size, torch.zeros(n)
    maps = torch.stack([cos, shear - sin, zero, sin, cos, zero], 1).reshape(n, 2, 3)
    grid = affine_grid(maps, list(x.shape), align_corners=False)
    return grid_sample(x, grid, padding_mode="border", align_corners=False)


def _warped(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    n = len(x)
    still = torch.tensor([[1.0, 0, 0], [0, 1.0, 0]]).expand(n, 2, 3)
    grid = affine_grid(still, list(x.shape), align_corners=False)
    coarse = torch.randn(n, 2, WARP_GRID, WARP_GRID, generator=generator) * WARP
    field = interpolate(coarse, size=x.shape[2:], mode="bicubic", align_corners=True)
    warped = grid + field.permute(0, 2, 3, 1)
    return grid_sample(x, warped, padding_mode="border", align_corners=False)


def _torn(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    """Exchange halves or quarters within an image."""
    height, width = x.shape[2] // 2, x.shape[3] // 2
    if _uniform(generator, 1).item() < 0.5:
        return x.roll(height, 2)
    return x.roll((height, width), (2, 3)) if _uniform(generator, 1).item() < 0.5 else x.roll(width, 3)


def _pasted(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    """Put a box of another image, or of an emptied one, into each image."""
    n, _, height, width = x.shape
    size = 0.35 + 0.3 * _uniform(generator, n, 2)
    start = _uniform(generator, n, 2) * (1 - size)
    down = (torch.arange(height) + 0.5) / height
    across = (torch.arange(width) + 0.5) / width
    in_rows = (down >= start[:, :1]) & (down < (start + size)[:, :1])
    in_columns = (across >= start[:, 1:]) & (across < (start + size)[:, 1:])
    inside = (in_rows[:, :, None] & in_columns[:, None, :])[:, None]
    other = everything[torch.randint(len(everything), (n,), generator=generator)].flip(2)
    empty = x.amin((2, 3), keepdim=True).expand_as(x)
    filling = torch.where(_uniform(generator, n, 1, 1, 1) < 0.5, other, empty)
    return torch.where(inside, filling, x)


def _drowned(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    """Add so much noise that little is left to see."""
    level = MIN_DROWNING_NOISE + (1.0 - MIN_DROWNING_NOISE) * _uniform(generator, len(x), 1, 1, 1)
    return x + level * torch.randn(x.shape, generator=generator)


def _mixed(x: Tensor, everything: Tensor, generator: torch.Generator) -> Tensor:
    other = everything[torch.randint(len(everything), (len(x),), generator=generator)]
    shifted = other.roll(max(x.shape[3] // 5, 1), 3)
    share = 0.4 + 0.2 * _uniform(generator, len(x), 1, 1, 1)
    lighter = torch.maximum(x, shifted)
    return torch.where(
        _uniform(generator, len(x), 1, 1, 1) < 0.5, lighter, share * x + (1 - share) * other
    )


def graded_pair(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return two damaged copies of each input, the second damaged more, in the same way.

    Args:
        x: Inputs, (n, d) standardised or (n, channels, height, width) on the range 0 to 1.
        generator: Where randomness comes from.

    Example:
        >>> x = torch.zeros(64, 3)
        >>> less, more = graded_pair(x, torch.Generator().manual_seed(0))
        >>> bool((less.norm(dim=1) < more.norm(dim=1)).all())
        True
    """
    n = len(x)
    least, most = IMAGE_DAMAGE if x.dim() == 4 else VECTOR_DAMAGE
    lift = torch.rand(2, n, generator=generator).sort(0).values
    levels = least * torch.exp(math.log(most / least) * lift)
    levels = levels.reshape(2, n, *[1] * (x.dim() - 1))
    noise = torch.randn(x.shape, generator=generator)
    if x.dim() == 2:
        # Half of the rows are hit in some features only.
        share = torch.rand(n, 1, generator=generator).mul(2).clamp(max=1.0)
        hit = torch.rand(x.shape, generator=generator) < share
        hit[torch.arange(n), torch.randint(x.shape[1], (n,), generator=generator)] = True
        noise = noise * hit
        return x + levels[0] * noise, x + levels[1] * noise
    # Half of the noisy pictures are cut to the range, as files are; half are not.
    cut = torch.rand(n, 1, 1, 1, generator=generator) < 0.5
    pair = [x + level * noise for level in levels]
    pair = [torch.where(cut, damaged.clamp(0.0, 1.0), damaged) for damaged in pair]
    return _with_other_damage(x, pair[0], pair[1], generator)


def _with_other_damage(
    x: Tensor, less: Tensor, more: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Replace the damage of some images by blur or by an empty square."""
    n, _, height, width = x.shape
    draw = torch.rand(n, generator=generator)
    blurred, covered = draw < OTHER_DAMAGE / 2, (draw >= OTHER_DAMAGE / 2) & (draw < OTHER_DAMAGE)
    if min(height, width) > 2:
        once = avg_pool2d(x[blurred], 3, 1, 1)
        less[blurred], more[blurred] = once, avg_pool2d(once, 3, 1, 1)
    side = max(min(height, width) // 6, 1)
    top = int(torch.randint(max(height - 2 * side, 1), (1,), generator=generator))
    left = int(torch.randint(max(width - 2 * side, 1), (1,), generator=generator))
    patches = x[covered].mean((2, 3), keepdim=True)
    for damaged, size in ((less, side), (more, 2 * side)):
        copy = x[covered].clone()
        copy[..., top : top + size, left : left + size] = patches
        damaged[covered] = copy
    return less, more
