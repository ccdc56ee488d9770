"""Estimators whose answer is pinned down by construction: fit, and know what was found."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.learn.adversarial import gan_value as gan_value
    from pindown.learn.adversarial import optimal_discriminator as optimal_discriminator
    from pindown.learn.adversarial import train_gan as train_gan
    from pindown.learn.distillation import LinearDistiller as LinearDistiller
    from pindown.learn.distillation import distil as distil
    from pindown.learn.exact import ExactReluClassifier as ExactReluClassifier
    from pindown.learn.exact import ExactReluRegressor as ExactReluRegressor
    from pindown.learn.gates import GLMTron as GLMTron
    from pindown.learn.gates import ModifiedSGDRegressor as ModifiedSGDRegressor
    from pindown.learn.gates import NoisyGDRegressor as NoisyGDRegressor
    from pindown.learn.gates import SingleFilterRegressor as SingleFilterRegressor
    from pindown.learn.kernels import KernelLogisticClassifier as KernelLogisticClassifier
    from pindown.learn.kernels import LeaveOneOutKernelRidge as LeaveOneOutKernelRidge
    from pindown.learn.margins import MarginPerceptron as MarginPerceptron
    from pindown.learn.max_pooling import MaxPoolClassifier as MaxPoolClassifier
    from pindown.learn.multi_exit import MultiExitClassifier as MultiExitClassifier
    from pindown.learn.mutual_autoencoder import MutualAutoencoder as MutualAutoencoder
    from pindown.learn.one_class import LocalMaximaDetector as LocalMaximaDetector
    from pindown.learn.reliable import Reliability as Reliability
    from pindown.learn.reliable import is_reliable as is_reliable
    from pindown.learn.segmented import SegmentedRegressor as SegmentedRegressor
    from pindown.learn.sparse_coding import SparseCodingAutoencoder as SparseCodingAutoencoder
    from pindown.learn.sparse_coding import TiedAutoencoder as TiedAutoencoder

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "adversarial": "gan_value jensen_shannon optimal_discriminator train_gan",
    "distillation": "LinearDistiller distil",
    "exact": "ExactReluClassifier ExactReluRegressor",
    "gates": "GLMTron ModifiedSGDRegressor NoisyGDRegressor SingleFilterRegressor",
    "kernels": "KernelLogisticClassifier LeaveOneOutKernelRidge",
    "margins": "MarginPerceptron",
    "max_pooling": "MaxPoolClassifier",
    "multi_exit": "MultiExitClassifier",
    "mutual_autoencoder": "MutualAutoencoder",
    "one_class": "LocalMaximaDetector",
    "reliable": "Reliability is_reliable",
    "segmented": "SegmentedRegressor",
    "sparse_coding": "SparseCodingAutoencoder TiedAutoencoder",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
