"""Small local damage of graded strength: the floor under the comparator's learned damage."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

_VECTOR_LEVELS = (0.03, 1.5)  # standard deviations
_IMAGE_LEVELS = (0.01, 0.6)  # ranges of the pixels
_OTHER_DAMAGE = 0.25  # share of images that are blurred or covered instead


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
    least, most = _IMAGE_LEVELS if x.dim() == 4 else _VECTOR_LEVELS
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
    blurred, covered = draw < _OTHER_DAMAGE / 2, (draw >= _OTHER_DAMAGE / 2) & (draw < _OTHER_DAMAGE)
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
