"""Estimators whose answer is pinned down by construction: fit, and know what was found."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from pindown.learn.reliable import Reliability as Reliability
    from pindown.learn.reliable import is_reliable as is_reliable
    from pindown.learn.segmented import SegmentedRegressor as SegmentedRegressor
    from pindown.learn.sparse_coding import SparseCodingAutoencoder as SparseCodingAutoencoder
    from pindown.learn.sparse_coding import TiedAutoencoder as TiedAutoencoder

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "exact": "ExactReluClassifier ExactReluRegressor",
    "gates": "GLMTron ModifiedSGDRegressor NoisyGDRegressor SingleFilterRegressor",
    "kernels": "KernelLogisticClassifier LeaveOneOutKernelRidge",
    "margins": "MarginPerceptron",
    "max_pooling": "MaxPoolClassifier",
    "reliable": "Reliability is_reliable",
    "segmented": "SegmentedRegressor",
    "sparse_coding": "SparseCodingAutoencoder TiedAutoencoder",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES]  # noqa: PLE0604 - all are strings


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
