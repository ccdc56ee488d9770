"""One module per published result: what was claimed, the run that checks it, and the comparison.

To add one: write a module with ``EXPERIMENT = Experiment(...)``, whose id is the module's name with
hyphens (or is told in ``_IDS``), and name it here. Modules are imported when their experiments are used.
What is published but not run is in ``declared.py``; ``write_ledger`` puts all of it on one page.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pindown.experiments.declaration import Declared, Experiment, Outcome
from pindown.experiments.declared import DECLARED
from pindown.experiments.every import Finished, reproduce_all
from pindown.experiments.ledger import Ledger, read_ledger
from pindown.experiments.ledger_page import write_page
from pindown.experiments.register import Register
from pindown.experiments.runner import Reproduction, reproduce

_MODULES = [
    "depth_separation",
    "digits_margin",
    "distillation_bias",
    "distillation_geometry",
    "distillation_monotonicity",
    "double_descent",
    "feature_scaling",
    "flat_minima",
    "fourier_bias",
    "fourier_masks",
    "frequency_loop",
    "gate_horizons",
    "harmonic_distortion",
    "hessian_tracking",
    "identifiability",
    "illumination_signature",
    "implicit_gradient_regularisation",
    "intrinsic_dimension",
    "invariant_kernels",
    "inverse_stability",
    "linear_bias",
    "local_maxima_ablations",
    "local_maxima_grid",
    "local_maxima_noise",
    "local_maxima_one_class",
    "local_maxima_signs",
    "local_maxima_survival",
    "max_pooling",
    "mirror_symmetry",
    "multi_exit_anytime",
    "multi_exit_budget",
    "multi_exit_few_labels",
    "multi_exit_teachers",
    "multi_exit_temperature",
    "multi_exit_times",
    "mutual_autoencoder_categorical",
    "mutual_autoencoder_encoders",
    "mutual_autoencoder_normal",
    "mutual_autoencoder_text",
    "ntk_spectral_bias",
    "ntk_versus_network",
    "optimiser_full_batch",
    "optimiser_gap",
    "optimiser_image_size",
    "optimiser_mini_batch",
    "optimiser_path",
    "optimiser_shift",
    "optimiser_vgg",
    "orbit_simulations",
    "pac_bayes_certificate",
    "pac_bayes_clusters",
    "pac_bayes_images",
    "parameterisation_probe",
    "random_noise",
    "residual_margin",
    "rotated_digits",
    "sparse_coding_digits",
    "sparse_coding_gradient",
    "sparse_coding_landscape",
    "sparse_coding_recovery",
    "steepest_descent",
    "symmetry_learning",
    "texture_shape",
    "two_layer_margin",
    "typical_networks",
]

_IDS = {
    "hessian_tracking": "optimisers-hessian",
    "optimiser_full_batch": "optimisers-full-batch",
    "optimiser_image_size": "optimisers-image-size",
    "optimiser_mini_batch": "optimisers-mini-batch",
    "optimiser_path": "training-path",
    "optimiser_shift": "optimisers-shift",
    "optimiser_vgg": "optimisers-vgg",
}

EXPERIMENTS: Mapping[str, Experiment] = Register(__name__, _MODULES, _IDS)


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def write_ledger(folder: Path | str, target: Path | str) -> Ledger:
    """Write the page that lists every experiment, run or declared, from the results in a folder.

    Args:
        folder: The ``out`` of :func:`reproduce`.
        target: The page, in Markdown; figures go to ``images/reproduction`` beside it.

    Returns:
        What is on the page.

    Raises:
        ValueError: If there is no such folder.
    """
    ledger = read_ledger(folder, EXPERIMENTS.values(), DECLARED.values())
    write_page(ledger, target, command="pindown reproduce --all --ledger docs/reproduction.md")
    return ledger


__all__ = [
    "DECLARED",
    "EXPERIMENTS",
    "Declared",
    "Experiment",
    "Finished",
    "Ledger",
    "Outcome",
    "Reproduction",
    "read_ledger",
    "reproduce",
    "reproduce_all",
    "write_ledger",
]
