"""Signatures: numbers that all samples of one orbit share, and what they can and cannot tell apart."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.symmetry.signatures.benchmark import orbit_benchmark as orbit_benchmark
    from pindown.symmetry.signatures.budget import TemplateSimulation as TemplateSimulation
    from pindown.symmetry.signatures.budget import signature_distance as signature_distance
    from pindown.symmetry.signatures.budget import simulate_templates as simulate_templates
    from pindown.symmetry.signatures.budget import templates_needed as templates_needed
    from pindown.symmetry.signatures.estimator import OrbitSignature as OrbitSignature
    from pindown.symmetry.signatures.estimator import Selectivity as Selectivity
    from pindown.symmetry.signatures.gabor_windows import gabor as gabor
    from pindown.symmetry.signatures.gabor_windows import windowed_signature as windowed_signature
    from pindown.symmetry.signatures.illumination import illuminate as illuminate
    from pindown.symmetry.signatures.illumination import illumination_moments as illumination_moments
    from pindown.symmetry.signatures.illumination import illumination_signature as illumination_signature
    from pindown.symmetry.signatures.illumination import interior_centres as interior_centres
    from pindown.symmetry.signatures.layers import SimpleComplex as SimpleComplex
    from pindown.symmetry.signatures.light_protocol import IlluminationReport as IlluminationReport
    from pindown.symmetry.signatures.light_protocol import illumination_protocol as illumination_protocol
    from pindown.symmetry.signatures.moments import moment_signature as moment_signature
    from pindown.symmetry.signatures.moments import values_from_power_sums as values_from_power_sums
    from pindown.symmetry.signatures.orbit_measures import orbit_distance as orbit_distance
    from pindown.symmetry.signatures.orbit_measures import orbit_mmd as orbit_mmd
    from pindown.symmetry.signatures.orbit_measures import orbit_sliced_distance as orbit_sliced_distance
    from pindown.symmetry.signatures.projections import deep_orbit_features as deep_orbit_features
    from pindown.symmetry.signatures.projections import orbit_matrix as orbit_matrix
    from pindown.symmetry.signatures.projections import orbit_projections as orbit_projections
    from pindown.symmetry.signatures.rectified import SignAmbiguity as SignAmbiguity
    from pindown.symmetry.signatures.rectified import relu_pool_ambiguity as relu_pool_ambiguity
    from pindown.symmetry.signatures.rectified import relu_pool_signature as relu_pool_signature
    from pindown.symmetry.signatures.thresholds import Confusion as Confusion
    from pindown.symmetry.signatures.thresholds import find_confusable as find_confusable
    from pindown.symmetry.signatures.thresholds import threshold_signature as threshold_signature
    from pindown.symmetry.signatures.transfer import PoolingCost as PoolingCost
    from pindown.symmetry.signatures.transfer import pool_over_inputs as pool_over_inputs
    from pindown.symmetry.signatures.transfer import pool_over_templates as pool_over_templates
    from pindown.symmetry.signatures.transfer import pooling_cost as pooling_cost

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "benchmark": "orbit_benchmark",
        "budget": "TemplateSimulation signature_distance simulate_templates templates_needed",
        "estimator": "OrbitSignature Selectivity",
        "illumination": "illuminate illumination_moments illumination_signature interior_centres",
        "layers": "SimpleComplex",
        "light_protocol": "IlluminationReport illumination_protocol",
        "moments": "moment_signature values_from_power_sums",
        "orbit_measures": "orbit_distance orbit_mmd orbit_sliced_distance",
        "projections": "deep_orbit_features orbit_matrix orbit_projections",
        "rectified": "SignAmbiguity relu_pool_ambiguity relu_pool_signature",
        "thresholds": "Confusion find_confusable threshold_signature",
        "transfer": "PoolingCost pool_over_inputs pool_over_templates pooling_cost",
        "gabor_windows": "gabor windowed_signature",
    },
)
