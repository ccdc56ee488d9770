# What pindown.geometry.plots offers; lazy.py reads this list.

# In the plane.
from pindown.geometry.plots.cells import plot_cells as plot_cells
from pindown.geometry.plots.cells import plot_surface as plot_surface
from pindown.geometry.plots.folds import plot_folds as plot_folds

# Along a segment.
from pindown.geometry.plots.folds import plot_segment as plot_segment

# During training.
from pindown.geometry.plots.training import animate_training as animate_training
from pindown.geometry.plots.training import plot_training as plot_training
