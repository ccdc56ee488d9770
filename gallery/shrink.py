"""Many units of a trained network can be taken out without changing its function at all.

Pruning is usually approximate and judged by accuracy. `shrink` removes what provably does nothing
on the box of inputs (units that are never on, never off, or copies of others) and reports how much
the outputs can have changed: nothing but rounding.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons
from sklearn.neural_network import MLPClassifier

import pindown as pn

X, y = make_moons(300, noise=0.15, random_state=0)
model = MLPClassifier((14, 14), solver="lbfgs", alpha=0.3, max_iter=3000, random_state=0).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)
box = pn.Box(X.min(axis=0), X.max(axis=0))
small = pn.shrink(net, box=box)
print(small)


def draw(ax, network, title):
    """Draw units as dots and weights as lines."""
    places = [
        np.c_[np.full(w, layer), np.arange(w) - (w - 1) / 2] for layer, w in enumerate(network.widths)
    ]
    for (W, _), left, right in zip(network.layers, places, places[1:], strict=False):
        lines = [(left[j], right[i]) for i in range(len(right)) for j in range(len(left))]
        strength = np.clip(abs(W).ravel() / np.quantile(abs(W), 0.9), 0, 1)
        colours = np.where(W.ravel() > 0, "C0", "C1")
        ax.add_collection(LineCollection(lines, colors=colours, linewidths=1.6 * strength, alpha=0.6))
    ax.scatter(*np.concatenate(places).T, s=55, c="white", edgecolors="black", zorder=3)
    ax.set(xlim=(-0.2, 3.2), ylim=(-7.5, 7.5))
    ax.set_title(title, loc="center")
    ax.axis("off")


figure, axes = plt.subplots(1, 2)
draw(axes[0], net, f"before: {net.size} ReLUs")
draw(axes[1], small.network, f"after: {small.network.size} ReLUs")
figure.supxlabel(
    f"largest change of an output on the box: {small.gap_upper:.0g} (proved)", weight="bold"
)

assert small.network.size < 0.8 * net.size and small.gap_upper < 1e-9

if __name__ == "__main__":
    figure.savefig("shrink.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
