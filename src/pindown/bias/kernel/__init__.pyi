# What pindown.bias.kernel offers; lazy.py reads this list.
from pindown.bias.kernel.empirical import empirical_ntk as empirical_ntk
from pindown.bias.kernel.infinite import infinite_ntk as infinite_ntk
from pindown.bias.kernel.dynamics import KernelPrediction as KernelPrediction
from pindown.bias.kernel.dynamics import ntk_predict as ntk_predict
from pindown.bias.kernel.spectrum import SpectralBias as SpectralBias
from pindown.bias.kernel.spectrum import residual_in_eigenbasis as residual_in_eigenbasis
from pindown.bias.kernel.spectrum import spectral_bias as spectral_bias
from pindown.bias.kernel.alignment import kernel_alignment as kernel_alignment
from pindown.bias.kernel.alignment import kernel_distance as kernel_distance
from pindown.bias.kernel.alignment import target_alignment as target_alignment
from pindown.bias.kernel.modules import Linearised as Linearised
from pindown.bias.kernel.modules import tangent_network as tangent_network
from pindown.bias.kernel.regime import Laziness as Laziness
from pindown.bias.kernel.regime import laziness as laziness
from pindown.bias.kernel.comparison import KernelComparison as KernelComparison
from pindown.bias.kernel.comparison import kernel_versus_network as kernel_versus_network
