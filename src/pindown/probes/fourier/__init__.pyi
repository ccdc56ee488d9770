# What pindown.probes.fourier offers; lazy.py reads this list.
from pindown.probes.fourier.attack import FourierAttack as FourierAttack
from pindown.probes.fourier.attack import fourier_attack as fourier_attack
from pindown.probes.fourier.checks import MaskCheck as MaskCheck
from pindown.probes.fourier.checks import kept_frequencies as kept_frequencies
from pindown.probes.fourier.checks import mask_check as mask_check
from pindown.probes.fourier.checks import sufficient_frequencies as sufficient_frequencies
from pindown.probes.fourier.filters import apply_mask as apply_mask
from pindown.probes.fourier.filters import is_symmetric as is_symmetric
from pindown.probes.fourier.filters import mirrored as mirrored
from pindown.probes.fourier.filters import random_masks as random_masks
from pindown.probes.fourier.masks import FourierMask as FourierMask
from pindown.probes.fourier.masks import fourier_mask as fourier_mask
from pindown.probes.fourier.objective import data_term as data_term
from pindown.probes.fourier.pictures import draw_mask as draw_mask
from pindown.probes.fourier.profiles import FrequencyProfile as FrequencyProfile
from pindown.probes.fourier.profiles import frequency_profile as frequency_profile
from pindown.probes.fourier.profiles import frequency_radius as frequency_radius
