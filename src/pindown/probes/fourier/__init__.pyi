# What pindown.probes.fourier offers; lazy.py reads this list.

# masks that a classifier needs, and what is left behind them
from pindown.probes.fourier.masks import FourierMask as FourierMask
from pindown.probes.fourier.masks import MaskCheck as MaskCheck
from pindown.probes.fourier.masks import fourier_mask as fourier_mask
from pindown.probes.fourier.masks import mask_check as mask_check
from pindown.probes.fourier.masks import sufficient_frequencies as sufficient_frequencies
from pindown.probes.fourier.training import data_term as data_term

# masks as filters, by radius and direction, and drawn
from pindown.probes.fourier.filters import FrequencyProfile as FrequencyProfile
from pindown.probes.fourier.filters import apply_mask as apply_mask
from pindown.probes.fourier.filters import draw_mask as draw_mask
from pindown.probes.fourier.filters import frequency_profile as frequency_profile
from pindown.probes.fourier.filters import frequency_radius as frequency_radius
from pindown.probes.fourier.filters import is_symmetric as is_symmetric
from pindown.probes.fourier.filters import kept_frequencies as kept_frequencies
from pindown.probes.fourier.filters import mirrored as mirrored
from pindown.probes.fourier.filters import random_masks as random_masks

# attacks that are small in every frequency
from pindown.probes.fourier.attack import FourierAttack as FourierAttack
from pindown.probes.fourier.attack import fourier_attack as fourier_attack
