"""Every result of the sources, found by number or in plain words: statement, function, test, erratum.

What is listed stands in a table for each source (``course.toml``, ``relu_thesis.toml``, ...) and in
``errata.toml``; the command ``pindown theorem``, ``docs/theorems.md`` and the table of
``docs/errata.md`` are made from them.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
