"""Data: files that users bring, the sources' generators, public data sets."""

from pindown.datasets.files import Table, load_table, numbered_alike

__all__ = ["Table", "load_table", "numbered_alike"]
