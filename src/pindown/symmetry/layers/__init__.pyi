# What pindown.symmetry.layers offers; lazy.py reads this list.

# All maps that commute, and representations
from pindown.symmetry.layers.basis import equivariant_basis as equivariant_basis
from pindown.symmetry.layers.basis import expected_dimension as expected_dimension
from pindown.symmetry.layers.basis import invariant_basis as invariant_basis
from pindown.symmetry.layers.representations import convolution_matrix as convolution_matrix
from pindown.symmetry.layers.representations import coset_representation as coset_representation
from pindown.symmetry.layers.representations import direct_sum as direct_sum
from pindown.symmetry.layers.representations import group_convolution as group_convolution
from pindown.symmetry.layers.representations import is_orthogonal as is_orthogonal
from pindown.symmetry.layers.representations import left_cosets as left_cosets
from pindown.symmetry.layers.representations import template_network as template_network
from pindown.symmetry.layers.representations import tensor_product as tensor_product
from pindown.symmetry.layers.representations import trivial as trivial

# Torch layers
from pindown.symmetry.layers.convolution import CosetPool as CosetPool
from pindown.symmetry.layers.convolution import GroupConv as GroupConv
from pindown.symmetry.layers.convolution import GroupLift as GroupLift
from pindown.symmetry.layers.convolution import GroupPool as GroupPool
from pindown.symmetry.layers.linear import EquivariantLinear as EquivariantLinear
from pindown.symmetry.layers.linear import SmoothedModule as SmoothedModule
from pindown.symmetry.layers.sets import PermEquivariant as PermEquivariant
from pindown.symmetry.layers.sets import PermInvariant as PermInvariant
from pindown.symmetry.layers.sets import SetNetwork as SetNetwork

# Checks of a whole stack
from pindown.symmetry.layers.equivariance_check import Blueprint as Blueprint
from pindown.symmetry.layers.equivariance_check import Stage as Stage
from pindown.symmetry.layers.equivariance_check import validate_blueprint as validate_blueprint
