# What pindown.symmetry.signatures offers; lazy.py reads this list.

# The estimator and the torch block
from pindown.symmetry.signatures.estimator import OrbitSignature as OrbitSignature
from pindown.symmetry.signatures.estimator import Selectivity as Selectivity
from pindown.symmetry.signatures.estimator import orbit_benchmark as orbit_benchmark
from pindown.symmetry.signatures.simple_complex import SimpleComplex as SimpleComplex

# Projections and what is read off them
from pindown.symmetry.signatures.projections import deep_orbit_features as deep_orbit_features
from pindown.symmetry.signatures.projections import orbit_matrix as orbit_matrix
from pindown.symmetry.signatures.projections import orbit_projections as orbit_projections
from pindown.symmetry.signatures.readouts import moment_signature as moment_signature
from pindown.symmetry.signatures.readouts import values_from_power_sums as values_from_power_sums

# What is told apart and what is confused
from pindown.symmetry.signatures.confusions import Confusion as Confusion
from pindown.symmetry.signatures.confusions import SignAmbiguity as SignAmbiguity
from pindown.symmetry.signatures.confusions import find_confusable as find_confusable
from pindown.symmetry.signatures.confusions import relu_pool_ambiguity as relu_pool_ambiguity
from pindown.symmetry.signatures.confusions import relu_pool_signature as relu_pool_signature
from pindown.symmetry.signatures.confusions import threshold_signature as threshold_signature
from pindown.symmetry.measure.orbit_distances import orbit_distance as orbit_distance
from pindown.symmetry.measure.orbit_distances import orbit_mmd as orbit_mmd
from pindown.symmetry.measure.orbit_distances import orbit_sliced_distance as orbit_sliced_distance

# What templates cost
from pindown.symmetry.signatures.template_costs import PoolingCost as PoolingCost
from pindown.symmetry.signatures.template_costs import TemplateSimulation as TemplateSimulation
from pindown.symmetry.signatures.template_costs import pool_over_inputs as pool_over_inputs
from pindown.symmetry.signatures.template_costs import pool_over_templates as pool_over_templates
from pindown.symmetry.signatures.template_costs import pooling_cost as pooling_cost
from pindown.symmetry.signatures.template_costs import signature_distance as signature_distance
from pindown.symmetry.signatures.template_costs import simulate_templates as simulate_templates
from pindown.symmetry.signatures.template_costs import templates_needed as templates_needed

# Partial groups and light
from pindown.symmetry.signatures.gabor_windows import gabor as gabor
from pindown.symmetry.signatures.gabor_windows import windowed_signature as windowed_signature
from pindown.symmetry.signatures.illumination import IlluminationReport as IlluminationReport
from pindown.symmetry.signatures.illumination import illuminate as illuminate
from pindown.symmetry.signatures.illumination import illumination_moments as illumination_moments
from pindown.symmetry.signatures.illumination import illumination_protocol as illumination_protocol
from pindown.symmetry.signatures.illumination import illumination_signature as illumination_signature
from pindown.symmetry.signatures.illumination import interior_centres as interior_centres
