"""Fifteen linear layers between graphs ignore how nodes are numbered, and here they are.

A layer that maps pairs of nodes to pairs of nodes has 256 weights for four nodes. If renumbering
nodes must renumber the answer, only 15 are left; the basis is computed for any finite group, and
the count is a sum over its elements.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from pindown.symmetry import equivariant_basis, symmetric
from pindown.symmetry.layers import expected_dimension, tensor_product

nodes = symmetric(4).permuting()
pairs = tensor_product(nodes, nodes)  # (24, 16, 16)
basis = equivariant_basis(pairs)

colours = ListedColormap(["#eef1f5", "#2b5c9e", "#e2703a", "#1f9e89"])
figure, axes = plt.subplots(3, 5, figsize=(6.6, 4.4))
order = np.argsort([-(abs(M) > 1e-9).sum() for M in basis])[::-1]
for place, (ax, index) in enumerate(zip(axes.flat, order, strict=True)):
    weights = np.where(abs(basis[index]) > 1e-9, 1.0 + place % 3, 0.0)
    ax.imshow(weights, cmap=colours, vmin=0, vmax=3)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
figure.suptitle("15 linear maps that ignore how nodes are numbered")

rng = np.random.default_rng(0)
layer = np.tensordot(rng.normal(size=len(basis)), basis, axes=1)
graph = rng.normal(size=16)
assert len(basis) == expected_dimension(pairs) == 15
assert all(np.allclose(layer @ (g @ graph), g @ (layer @ graph)) for g in pairs)

if __name__ == "__main__":
    figure.savefig("equivariant_maps.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
