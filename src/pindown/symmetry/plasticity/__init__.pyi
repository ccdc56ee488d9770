# What pindown.symmetry.plasticity offers; lazy.py reads this list.

# Hebbian learning
from pindown.symmetry.plasticity.hebbian import HebbianRun as HebbianRun
from pindown.symmetry.plasticity.hebbian import gradient_rule as gradient_rule
from pindown.symmetry.plasticity.hebbian import leading_share as leading_share
from pindown.symmetry.plasticity.hebbian import learn as learn
from pindown.symmetry.plasticity.hebbian import oja as oja
from pindown.symmetry.plasticity.hebbian import oja_rule as oja_rule
from pindown.symmetry.plasticity.hebbian import (
    plasticity_equivariance_error as plasticity_equivariance_error,
)
from pindown.symmetry.plasticity.hebbian import sanger as sanger

# Principal components of orbits and of mirrored data
from pindown.symmetry.plasticity.covariance import Eigenspace as Eigenspace
from pindown.symmetry.plasticity.covariance import MirrorComponents as MirrorComponents
from pindown.symmetry.plasticity.covariance import commutator_norm as commutator_norm
from pindown.symmetry.plasticity.covariance import eigenspaces as eigenspaces
from pindown.symmetry.plasticity.covariance import is_invariant_subspace as is_invariant_subspace
from pindown.symmetry.plasticity.covariance import mirrored_covariance as mirrored_covariance
from pindown.symmetry.plasticity.covariance import orbit_covariance as orbit_covariance
from pindown.symmetry.plasticity.covariance import orbit_span as orbit_span
from pindown.symmetry.plasticity.covariance import parity_of_components as parity_of_components

# Which units belong together
from pindown.symmetry.plasticity.pooling import LearnedPools as LearnedPools
from pindown.symmetry.plasticity.pooling import learn_pools as learn_pools
