"""Linear distillation: what a student learns from a teacher's logits, and what it loses."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
