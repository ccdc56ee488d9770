"""Data: files that users bring, the sources' generators, public data sets."""

from pindown.datasets.files import Table, load_table

__all__ = ["Table", "load_table"]
