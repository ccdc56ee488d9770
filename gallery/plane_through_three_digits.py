"""On the plane through three images, a deep network's cells and classes are drawn exactly.

With 64 inputs the cells cannot be listed, there are too many. Those on a plane can: the picture is
a true cut through the function, to the last sliver, and not a grid of samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.geometry import plane_through

X, y = load_digits(return_X_y=True)
X = X / 16
model = MLPClassifier((24, 24), max_iter=60, random_state=0).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)
corners = np.array([X[y == 0][0], X[y == 4][7], X[y == 9][4]])

plane = plane_through(net, *corners, margin=0.6)
cells = plane.complex
polygons = [region.vertices for region in cells.regions]
centres = np.array([polygon.mean(axis=0) for polygon in polygons])
classes = net(plane.lift(centres)).argmax(axis=1)

figure, ax = plt.subplots(figsize=(6.6, 5.2))
palette = plt.get_cmap("tab10")(classes)
shade = np.random.default_rng(0).uniform(0.35, 0.6, (len(classes), 1))
palette[:, :3] = 1 - (1 - palette[:, :3]) * shade
ax.add_collection(PolyCollection(polygons, facecolors=palette, edgecolors="white", linewidths=0.5))
for place, image in zip(plane.marks, corners, strict=True):
    size = 0.13 * (cells.box.upper - cells.box.lower)
    inset = ax.inset_axes([*(place - size / 2), *size], transform=ax.transData)
    inset.imshow(image.reshape(8, 8), cmap="Greys")
    inset.set(xticks=[], yticks=[])
ax.set(xlim=(cells.box.lower[0], cells.box.upper[0]), ylim=(cells.box.lower[1], cells.box.upper[1]))
ax.set(aspect="equal", xticks=[], yticks=[])
ax.spines[:].set_visible(False)
ax.set_title(f"{cells.n_regions:,} cells on a plane in 64 dimensions; colour: the class")

values = np.einsum("nkd,nd->nk", cells.A, centres) + cells.c
assert cells.complete and np.allclose(values, net(plane.lift(centres)), atol=1e-9)

if __name__ == "__main__":
    figure.savefig("plane_through_three_digits.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
