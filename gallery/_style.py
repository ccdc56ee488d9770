"""How the figures of the gallery look: a few settings of matplotlib, applied before a script runs.

The scripts themselves set none of this and name colours by their place in the cycle (``"C0"``), so
that they can be pasted anywhere and then look like the reader's other figures.
"""

from typing import Any

# Dark enough for lines and text on white, and told apart with all common kinds of colour vision.
COLOURS = ("#2b5c9e", "#e2703a", "#1f9e89", "#8e4585", "#e0a526", "#c43c51", "#7a7f87", "#5bb0e0")
INK = "#22262b"
FAINT = "#c9cdd2"


def settings() -> dict[str, Any]:
    """Return the settings, as matplotlib's ``rcParams`` name them."""
    from matplotlib import cycler

    return {
        "figure.figsize": (6.6, 4.1),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.h_pad": 0.1,
        "figure.constrained_layout.w_pad": 0.1,
        "figure.titlesize": 13,
        "figure.labelsize": 12,
        "figure.titleweight": "bold",
        "savefig.dpi": 150,
        "font.size": 11,
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 9,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
        "lines.linewidth": 2.0,
        "lines.solid_capstyle": "round",
        "legend.frameon": False,
        "image.cmap": "RdYlBu",
    }
