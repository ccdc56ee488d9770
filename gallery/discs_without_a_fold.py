"""Around every input is a disc on which the network is exactly affine, and its radius can be computed.

How far can an explanation by a gradient be trusted? As far as the network is affine: up to the
nearest fold. Inside the disc the gradient explains the network without any error, outside it may
say nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection, LineCollection
from sklearn.datasets import make_circles
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.geometry import distance_to_nearest_fold, fold_set

X, y = make_circles(140, noise=0.07, factor=0.45, random_state=0)
model = MLPClassifier((9, 9), solver="lbfgs", alpha=0.1, max_iter=400, random_state=1).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)
box = pn.Box([-1.35, -1.35], [1.35, 1.35])

folds = fold_set(net, box)
radius = distance_to_nearest_fold(net, X).distance

figure, ax = plt.subplots(figsize=(6.6, 5.2))
ax.add_collection(
    LineCollection(folds.segments, colors=np.where(folds.layers == 1, "0.6", "0.3"), lw=1.2)
)
for label in (0, 1):
    rows = y == label
    size = 2 * radius[rows]
    place = {"offsets": X[rows], "offset_transform": ax.transData, "units": "xy"}
    discs = EllipseCollection(size, size, 0 * size, facecolor=f"C{label}", alpha=0.25, **place)
    ax.add_collection(discs)
    ax.scatter(*X[rows].T, s=10, c=f"C{label}", zorder=3)
ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", xticks=[], yticks=[])
ax.spines[:].set_visible(False)
ax.set_title("each disc reaches to the nearest fold")
ax.set_xlabel("lines: folds of the first (light) and second layer (dark)")

angles = np.linspace(0, 2 * np.pi, 60)
circle = np.c_[np.cos(angles), np.sin(angles)]
for x, r in zip(X, radius, strict=True):
    A, c = net.local_affine(x)
    disc = x + 0.999 * r * circle
    assert np.allclose(net(disc), disc @ A.T + c, atol=1e-9)

if __name__ == "__main__":
    figure.savefig("discs_without_a_fold.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
