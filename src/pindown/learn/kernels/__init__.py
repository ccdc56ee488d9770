"""Kernels and their function spaces: kernel objects, spectra, norms, ridge and logistic regression."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
