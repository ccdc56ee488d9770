# What pindown.symmetry.augmentation offers; lazy.py reads this list.
from pindown.symmetry.augmentation.averaged_loss import orbit_loss as orbit_loss
from pindown.symmetry.augmentation.gradients import (
    gradient_equivariance_error as gradient_equivariance_error,
)
from pindown.symmetry.augmentation.gradients import orbit_gradient_component as orbit_gradient_component
from pindown.symmetry.augmentation.orbit_weights import orbit_deviation as orbit_deviation
from pindown.symmetry.augmentation.orbit_weights import orbit_init as orbit_init
from pindown.symmetry.augmentation.window_filter import box_average as box_average
from pindown.symmetry.augmentation.window_filter import grid_window_multiplier as grid_window_multiplier
from pindown.symmetry.augmentation.window_filter import window_multiplier as window_multiplier
