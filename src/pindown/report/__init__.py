"""Findings as a page, as text, as Markdown and as JSON; comparisons and detections likewise."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
