"""A network with two inputs is a landscape of flat facets, and all of them can be listed.

Sampling a grid shows what a network does at the grid. The list of cells says what it does
everywhere: each cell has its corners and one affine map, they tile the box without gaps, and facts
such as the highest point are read off, not estimated.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from sklearn.neural_network import MLPRegressor

import pindown as pn
from pindown.geometry import output_range, polyhedral_complex

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (1500, 2))
radius = np.hypot(*X.T)
y = np.cos(2.6 * radius) * np.exp(-radius / 3) + 0.25 * np.sin(2 * X[:, 0])
model = MLPRegressor(hidden_layer_sizes=(24, 24), solver="lbfgs", max_iter=500, random_state=0).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)

cells = polyhedral_complex(net, pn.Box([-2, -2], [2, 2]))
heights = output_range(cells)
print(cells, heights)

figure, ax = plt.subplots(figsize=(6.6, 5.4))
polygons = [region.vertices for region in cells.regions]
centres = np.array([polygon.mean(axis=0) for polygon in polygons])
normals = np.c_[-cells.A[:, 0], np.ones(len(polygons))]  # one normal for each facet
light = normals @ [-0.5, 0.5, 0.7] / np.linalg.norm(normals, axis=1)
values = net(centres)[:, 0]
colours = plt.get_cmap("Spectral_r")(plt.Normalize(-1, 1.1)(values))
colours[:, :3] = np.clip(colours[:, :3] * (0.62 + 0.5 * light[:, None]), 0, 1)  # lit from the top left
ax.add_collection(PolyCollection(polygons, facecolors=colours, edgecolors=colours, linewidths=0.4))
ax.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal", xticks=[], yticks=[])
ax.spines[:].set_visible(False)
ax.set_title(f"one network, {cells.n_regions:,} flat facets: all there are")
ax.set_xlabel("colour: the output; shading: its slope, lit from the top left")

assert cells.complete and np.isclose(cells.volumes.sum(), 16)  # they tile the square
assert all(np.allclose(r.A @ c + r.c, net(c)) for r, c in zip(cells.regions, centres, strict=True))

if __name__ == "__main__":
    figure.savefig("cells.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
