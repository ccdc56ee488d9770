"""Models in and out: ONNX, torch modules, safetensors and state dicts, scikit-learn MLPs."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
