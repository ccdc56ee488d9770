"""Which frequencies of its input a classifier needs.

Names are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.guarantees.fourier.attack import FourierAttack as FourierAttack
    from pindown.guarantees.fourier.attack import fourier_attack as fourier_attack
    from pindown.guarantees.fourier.checks import MaskCheck as MaskCheck
    from pindown.guarantees.fourier.checks import kept_frequencies as kept_frequencies
    from pindown.guarantees.fourier.checks import mask_check as mask_check
    from pindown.guarantees.fourier.checks import sufficient_frequencies as sufficient_frequencies
    from pindown.guarantees.fourier.filters import apply_mask as apply_mask
    from pindown.guarantees.fourier.filters import is_symmetric as is_symmetric
    from pindown.guarantees.fourier.filters import mirrored as mirrored
    from pindown.guarantees.fourier.filters import random_masks as random_masks
    from pindown.guarantees.fourier.masks import FourierMask as FourierMask
    from pindown.guarantees.fourier.masks import fourier_mask as fourier_mask
    from pindown.guarantees.fourier.objective import data_term as data_term
    from pindown.guarantees.fourier.pictures import draw_mask as draw_mask
    from pindown.guarantees.fourier.profiles import FrequencyProfile as FrequencyProfile
    from pindown.guarantees.fourier.profiles import frequency_profile as frequency_profile
    from pindown.guarantees.fourier.profiles import frequency_radius as frequency_radius

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "attack": "FourierAttack fourier_attack",
        "checks": "MaskCheck kept_frequencies mask_check sufficient_frequencies",
        "filters": "apply_mask is_symmetric mirrored random_masks",
        "masks": "FourierMask fourier_mask",
        "objective": "data_term",
        "pictures": "draw_mask",
        "profiles": "FrequencyProfile frequency_profile frequency_radius",
    },
)
