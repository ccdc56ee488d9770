# What pindown.bias.tangent_kernel offers; lazy.py reads this list.

# kernels of networks, finite and infinitely wide
from pindown.bias.tangent_kernel.empirical import empirical_ntk as empirical_ntk
from pindown.bias.tangent_kernel.infinite import infinite_ntk as infinite_ntk

# training while the kernel stays
from pindown.bias.tangent_kernel.dynamics import KernelPrediction as KernelPrediction
from pindown.bias.tangent_kernel.dynamics import SpectralBias as SpectralBias
from pindown.bias.tangent_kernel.dynamics import ntk_predict as ntk_predict
from pindown.bias.tangent_kernel.dynamics import residual_in_eigenbasis as residual_in_eigenbasis
from pindown.bias.tangent_kernel.dynamics import spectral_bias as spectral_bias

# kernels side by side
from pindown.bias.tangent_kernel.gram import kernel_alignment as kernel_alignment
from pindown.bias.tangent_kernel.gram import kernel_distance as kernel_distance
from pindown.bias.tangent_kernel.gram import target_alignment as target_alignment

# does the kernel stay?
from pindown.bias.tangent_kernel.lazy_regime import KernelComparison as KernelComparison
from pindown.bias.tangent_kernel.lazy_regime import Laziness as Laziness
from pindown.bias.tangent_kernel.lazy_regime import kernel_versus_network as kernel_versus_network
from pindown.bias.tangent_kernel.lazy_regime import laziness as laziness

# networks in the tangent parameterisation
from pindown.bias.tangent_kernel.linearised import Linearised as Linearised
from pindown.bias.tangent_kernel.linearised import tangent_network as tangent_network
