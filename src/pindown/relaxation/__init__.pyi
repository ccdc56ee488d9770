# What pindown.relaxation offers; lazy.py reads this list.

# bounds on a box
from pindown.model.operations.operation import Interval as Interval
from pindown.relaxation.intervals import interval_bounds as interval_bounds
from pindown.relaxation.linear import linear_bounds as linear_bounds
from pindown.relaxation.triangle import triangle_relaxation as triangle_relaxation

# norms
from pindown.relaxation.convolution_norms import convolution_norm as convolution_norm
from pindown.relaxation.lipschitz import LipschitzBounds as LipschitzBounds
from pindown.relaxation.lipschitz import layer_spectral_norms as layer_spectral_norms
from pindown.relaxation.lipschitz import lipschitz_bounds as lipschitz_bounds
from pindown.relaxation.operator_norms import NormBound as NormBound
from pindown.relaxation.operator_norms import absolute_product_norm as absolute_product_norm
from pindown.relaxation.operator_norms import spectral_norm as spectral_norm
from pindown.relaxation.model_bounds import bounds as bounds
