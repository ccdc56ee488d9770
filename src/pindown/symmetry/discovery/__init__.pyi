# What pindown.symmetry.discovery offers; lazy.py reads this list.

# The estimator, and what its claim rests on
from pindown.symmetry.discovery.learner import SymmetryLearner as SymmetryLearner
from pindown.symmetry.discovery.held_out import GroupEvidence as GroupEvidence
from pindown.symmetry.discovery.held_out import hard_negatives as hard_negatives

# Groups by their multiplication tables
from pindown.symmetry.discovery.identification import identify as identify
from pindown.symmetry.discovery.identification import isomorphism as isomorphism
from pindown.symmetry.discovery.identification import known_groups as known_groups
from pindown.symmetry.discovery.identification import product_table as product_table
from pindown.symmetry.axioms import check_table as check_table
from pindown.symmetry.axioms import element_orders as element_orders
from pindown.symmetry.axioms import is_abelian as is_abelian

# Gramians of orbits, and how far vectors are from one
from pindown.symmetry.discovery.gramians import automorphism_orbits as automorphism_orbits
from pindown.symmetry.discovery.gramians import cayley_permutations as cayley_permutations
from pindown.symmetry.discovery.gramians import gramian as gramian
from pindown.symmetry.discovery.gramians import gramian_automorphisms as gramian_automorphisms
from pindown.symmetry.discovery.gramians import is_permuted_matrix as is_permuted_matrix
from pindown.symmetry.discovery.gramians import orbit_closure_error as orbit_closure_error
from pindown.symmetry.discovery.gramians import orbit_score as orbit_score
from pindown.symmetry.discovery.gramians import regular_subgroups as regular_subgroups
from pindown.symmetry.discovery.gramians import separation as separation
from pindown.symmetry.discovery.gramians import signature_distances as signature_distances
from pindown.symmetry.discovery.gramians import sorted_signature as sorted_signature

# Atoms learned under a penalty
from pindown.symmetry.discovery.group_from_gramian import Atoms as Atoms
from pindown.symmetry.discovery.group_from_gramian import gram_symmetry_penalty as gram_symmetry_penalty
from pindown.symmetry.discovery.group_from_gramian import group_recovery as group_recovery
from pindown.symmetry.discovery.group_from_gramian import learn_orbit as learn_orbit
from pindown.symmetry.discovery.group_from_gramian import soft_sort as soft_sort
from pindown.symmetry.discovery.group_from_gramian import sorted_gram_penalty as sorted_gram_penalty
