"""Pictures of cells, folds, surfaces and segments, with matplotlib.

Every function takes ``ax`` and returns it. Without one it makes a figure of its own, which belongs to no
window and no global state: ``plot_cells(cx).figure.savefig("cells.png")``.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
