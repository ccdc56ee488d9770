"""What augmentation does: invariant losses, gradients that keep orbits, windows as low-pass filters."""

from pindown.lazy import lazy_names

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "averaged_loss": "orbit_loss",
        "gradients": "gradient_equivariance_error orbit_gradient_component",
        "orbit_weights": "orbit_deviation orbit_init",
        "window_filter": "box_average grid_window_multiplier window_multiplier",
    },
)
