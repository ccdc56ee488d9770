"""Pictures of cells, folds, surfaces and segments, with matplotlib.

Every function takes ``ax`` and returns it. Without one it makes a figure of its own, which belongs to no
window and no global state: ``plot_cells(cx).figure.savefig("cells.png")``.
"""

from pindown.geometry.plots.cells import plot_cells, plot_surface
from pindown.geometry.plots.folds import plot_folds, plot_segment
from pindown.geometry.plots.training import animate_training, plot_training

__all__ = [
    "animate_training",
    "plot_cells",
    "plot_folds",
    "plot_segment",
    "plot_surface",
    "plot_training",
]
