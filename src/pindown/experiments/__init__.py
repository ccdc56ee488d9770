"""One module per published result: what was claimed, the run that checks it, and the comparison.

To add one: write a module with ``EXPERIMENT = Experiment(...)`` and name it here.
"""

from importlib import import_module

from pindown.experiments.declaration import Experiment, Outcome
from pindown.experiments.runner import Reproduction, reproduce

_MODULES = [
    "depth_separation",
    "gate_horizons",
    "hessian_tracking",
    "identifiability",
    "inverse_stability",
    "max_pooling",
    "optimiser_full_batch",
    "optimiser_gap",
    "optimiser_image_size",
    "optimiser_mini_batch",
    "optimiser_path",
    "optimiser_shift",
    "optimiser_vgg",
    "sparse_coding_digits",
    "sparse_coding_gradient",
    "sparse_coding_landscape",
    "sparse_coding_recovery",
    "typical_networks",
]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (import_module(f"{__name__}.{name}").EXPERIMENT for name in _MODULES)
}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Reproduction", "reproduce"]
