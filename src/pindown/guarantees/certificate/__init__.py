"""A certificate for your own network: its risk on new examples, proved at a stated confidence."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
