# What pindown.symmetry offers; lazy.py reads this list.

# Groups: elements, tables, actions
from pindown.symmetry.groups import Group as Group
from pindown.symmetry.groups import cyclic as cyclic
from pindown.symmetry.groups import dihedral as dihedral
from pindown.symmetry.groups import from_permutations as from_permutations
from pindown.symmetry.groups import symmetric as symmetric
from pindown.symmetry.constructions import alternating as alternating
from pindown.symmetry.constructions import commute_on as commute_on
from pindown.symmetry.constructions import direct_product as direct_product
from pindown.symmetry.constructions import generate as generate
from pindown.symmetry.constructions import named_groups as named_groups
from pindown.symmetry.constructions import octahedral as octahedral
from pindown.symmetry.constructions import pyritohedral as pyritohedral
from pindown.symmetry.constructions import quaternion as quaternion
from pindown.symmetry.constructions import tetrahedral as tetrahedral
from pindown.symmetry.families import Window as Window

# Orbits
from pindown.symmetry.orbits import action_error as action_error
from pindown.symmetry.orbits import distinct_images as distinct_images
from pindown.symmetry.orbits import orbit_partition as orbit_partition
from pindown.symmetry.orbits import same_orbit as same_orbit
from pindown.symmetry.orbits import stabiliser as stabiliser

# Averages over groups (Haar), and generators of continuous transformations
from pindown.symmetry.haar import Average as Average
from pindown.symmetry.haar import affine_integral as affine_integral
from pindown.symmetry.haar import circle_average as circle_average
from pindown.symmetry.haar import group_average as group_average
from pindown.symmetry.haar import space_average as space_average
from pindown.symmetry.generators import estimate_generators as estimate_generators
from pindown.symmetry.generators import fit_generators as fit_generators
from pindown.symmetry.generators import local_orbit as local_orbit

# How far a model keeps a symmetry (more in measure)
from pindown.symmetry.measure.errors import SymmetryChange as SymmetryChange
from pindown.symmetry.measure.errors import SymmetryError as SymmetryError
from pindown.symmetry.measure.errors import equivariance as equivariance
from pindown.symmetry.measure.errors import invariance as invariance
from pindown.symmetry.measure.errors import symmetry_change as symmetry_change
from pindown.symmetry.measure.proofs import ElementProof as ElementProof
from pindown.symmetry.measure.proofs import InvarianceProof as InvarianceProof
from pindown.symmetry.measure.proofs import prove_invariance as prove_invariance
from pindown.symmetry.measure.labels import LabelSymmetry as LabelSymmetry
from pindown.symmetry.measure.labels import is_label_symmetry as is_label_symmetry
from pindown.symmetry.measure.labels import label_symmetry as label_symmetry
from pindown.symmetry.measure.orbit_distances import OrbitReport as OrbitReport
from pindown.symmetry.measure.orbit_distances import orbit_report as orbit_report

# Models that keep it by construction (more in layers, graphs and signatures)
from pindown.symmetry.layers.basis import equivariant_basis as equivariant_basis
from pindown.symmetry.layers.basis import expected_dimension as expected_dimension
from pindown.symmetry.layers.basis import invariant_basis as invariant_basis
from pindown.symmetry.layers.equivariance_check import validate_blueprint as validate_blueprint
from pindown.symmetry.signatures.estimator import OrbitSignature as OrbitSignature
from pindown.symmetry.signatures.simple_complex import SimpleComplex as SimpleComplex
from pindown.symmetry.kernels import invariant_gram as invariant_gram
from pindown.symmetry.kernels import invariant_kernel as invariant_kernel
from pindown.symmetry.kernels import pooled_features as pooled_features
from pindown.symmetry.smoothing import GroupAverage as GroupAverage
from pindown.symmetry.smoothing import GroupSmoothed as GroupSmoothed
from pindown.symmetry.smoothing import orbit_variance as orbit_variance
from pindown.symmetry.smoothing import smoothed as smoothed

# Training on whole orbits (Hebbian rules in plasticity)
from pindown.symmetry.augmentation import box_average as box_average
from pindown.symmetry.augmentation import gradient_equivariance_error as gradient_equivariance_error
from pindown.symmetry.augmentation import grid_window_multiplier as grid_window_multiplier
from pindown.symmetry.augmentation import orbit_deviation as orbit_deviation
from pindown.symmetry.augmentation import orbit_gradient_component as orbit_gradient_component
from pindown.symmetry.augmentation import orbit_init as orbit_init
from pindown.symmetry.augmentation import orbit_loss as orbit_loss
from pindown.symmetry.augmentation import window_multiplier as window_multiplier

# What a symmetry is worth, and one found in data (more in discovery)
from pindown.symmetry.sample_gain import invariance_gain as invariance_gain
from pindown.symmetry.discovery.learner import SymmetryLearner as SymmetryLearner
