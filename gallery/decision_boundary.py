"""The decision boundary of a network is a union of straight segments, found without a grid.

A contour plot can miss an island that is smaller than a grid square. Here every segment of the
boundary is listed, and so are the connected parts of each class's region: there is no island left
to find.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.geometry import decision_regions

rng = np.random.default_rng(1)
t = rng.uniform(0.4, 2.6, 360)
y = np.arange(360) % 3
angle = 2.1 * t + 2 * np.pi * y / 3
X = np.c_[t * np.cos(angle), t * np.sin(angle)] + 0.12 * rng.normal(size=(360, 2))
model = MLPClassifier((16, 16), solver="lbfgs", alpha=0.02, max_iter=600, random_state=0).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)

regions = decision_regions(net, pn.Box([-3, -3], [3, 3]))
segments = regions.boundary.segments

figure, ax = plt.subplots(figsize=(6.6, 5.2))
tints = np.array(["#dbe6f4", "#fbe3d6", "#d3efe9"])
polygons = [region.vertices for region in regions.complex.regions]
ax.add_collection(
    PolyCollection(polygons, facecolors=tints[regions.classes], edgecolors="white", lw=0.5)
)
ax.add_collection(LineCollection(segments, colors="black", linewidths=1.8))
for label in range(3):
    ax.scatter(*X[y == label].T, s=14, c=f"C{label}", edgecolors="white", linewidths=0.4, zorder=3)
ax.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xticks=[], yticks=[])
ax.spines[:].set_visible(False)
shares = ", ".join(f"{share:.0%}" for share in regions.shares)
ax.set_title(f"{len(segments)} segments, the whole boundary")
ax.set_xlabel(
    f"the classes take {shares} of the square, {regions.n_islands.sum()} connected parts in all"
)

scores = np.sort(net(segments.mean(axis=1)), axis=1)
assert regions.exact and np.allclose(scores[:, -1], scores[:, -2], atol=1e-9)  # a tie on every segment

if __name__ == "__main__":
    figure.savefig("decision_boundary.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
