"""Ten layers of two ReLUs do what one layer can do only with more than a thousand.

Each layer folds its input once, and folding a folded thing doubles the folds. A shallow network has
to make every bend with a unit of its own: the bound is a count, not an experiment.
"""

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np

from pindown.circuits import PiecewiseLinear1D, composed_zigzags, depth_gap

half = Fraction(1, 2)
layers = range(1, 11)
nets = [composed_zigzags([[half]] * k) for k in layers]
gaps = [depth_gap(width=2, layers=k, shallow_layers=1) for k in layers]

figure = plt.figure()
grid = figure.add_gridspec(4, 2, width_ratios=[1, 1.15])
x = np.linspace(0, 1, 2049)[:, None]
for row, k in enumerate((1, 2, 4, 6)):
    ax = figure.add_subplot(grid[row, 0])
    ax.plot(x, nets[k - 1].to_network()(x), c="C0", lw=1.4)
    ax.set(xlim=(0, 1), ylim=(-0.05, 1.05), xticks=[], yticks=[])
    ax.set_ylabel(f"{k}", rotation=0, ha="right", va="center", size=11)
    ax.spines[:].set_visible(False)
    if row == 0:
        ax.set_title("layers, and the function")
right = figure.add_subplot(grid[:, 1])
right.plot(layers, [2 * k for k in layers], "o-", c="C0")
right.plot(layers, [gap.least for gap in gaps], "o-", c="C1")
right.text(10, 30, "deep", color="C0", weight="bold", ha="right")
right.text(7.6, 500, "one hidden layer", color="C1", weight="bold", ha="right")
right.set(yscale="log", xlabel="layers of the deep network")
right.set_title("ReLUs needed")
right.grid(axis="y")

pieces = [PiecewiseLinear1D.from_network(net).on(0, 1) for net in nets]
assert pieces == [2**k for k in layers]
assert nets[-1].to_network().size == 20 and gaps[-1].least > 1000

if __name__ == "__main__":
    figure.savefig("depth_separation.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
