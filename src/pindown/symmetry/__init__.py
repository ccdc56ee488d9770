"""Symmetry: groups and their actions, how far a model keeps them, and models that keep them exactly."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.symmetry.discovery.learner import SymmetryLearner as SymmetryLearner
    from pindown.symmetry.groups import Group as Group
    from pindown.symmetry.groups import cyclic as cyclic
    from pindown.symmetry.groups import dihedral as dihedral
    from pindown.symmetry.groups import symmetric as symmetric
    from pindown.symmetry.kernels import invariant_kernel as invariant_kernel
    from pindown.symmetry.layers.basis import equivariant_basis as equivariant_basis
    from pindown.symmetry.layers.blueprint import validate_blueprint as validate_blueprint
    from pindown.symmetry.measure.errors import equivariance as equivariance
    from pindown.symmetry.measure.errors import invariance as invariance
    from pindown.symmetry.probes import class_activation_maps as class_activation_maps
    from pindown.symmetry.probes import neural_predictivity as neural_predictivity
    from pindown.symmetry.probes import shape_bias as shape_bias
    from pindown.symmetry.signatures.estimator import OrbitSignature as OrbitSignature
    from pindown.symmetry.signatures.layers import SimpleComplex as SimpleComplex
    from pindown.symmetry.smoothed_estimator import GroupSmoothed as GroupSmoothed
    from pindown.symmetry.smoothing import smoothed as smoothed

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "groups": "Group cyclic dihedral from_permutations symmetric",
        "averaging": "Average affine_integral circle_average group_average space_average",
        "catalogue": "alternating named_groups octahedral pyritohedral quaternion tetrahedral",
        "closure": "generate",
        "discovery": "SymmetryLearner",
        "generators": "estimate_generators fit_generators local_orbit",
        "measure.comparison": "SymmetryChange symmetry_change",
        "measure.errors": "SymmetryError equivariance invariance",
        "measure.labels": "LabelSymmetry is_label_symmetry label_symmetry",
        "measure.orbit_distances": "OrbitReport orbit_report",
        "orbits": "action_error distinct_images orbit_partition same_orbit stabiliser",
        "probes": "class_activation_maps closed_loop_filter make_cue_images make_filtered_stimuli "
        "neural_predictivity shape_bias",
        "products": "direct_product",
        "windows": "Window",
        "signatures": "OrbitSignature SimpleComplex",
        "kernels": "invariant_gram invariant_kernel pooled_features",
        "layers.basis": "equivariant_basis expected_dimension invariant_basis",
        "layers.blueprint": "validate_blueprint",
        "sample_gain": "invariance_gain",
        "smoothed_estimator": "GroupSmoothed",
        "smoothing": "GroupAverage orbit_variance smoothed",
    },
)
