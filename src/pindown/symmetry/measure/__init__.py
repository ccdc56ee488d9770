"""How far a model keeps a symmetry: errors with a scale, selectivity, labels, parameters."""

from pindown.lazy import lazy_names

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "comparison": "SymmetryChange symmetry_change",
        "errors": "SymmetryError equivariance invariance",
        "labels": "LabelSymmetry is_label_symmetry label_symmetry",
        "models": "as_function untrained_copy",
        "orbit_distances": "OrbitReport orbit_report",
        "parameters": "canonical_units flip_hidden forward match_units permute_hidden rescale_hidden",
    },
)
