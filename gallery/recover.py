"""The values of a network can give away its weights: a copy is rebuilt from queries alone.

Whoever may ask a model for its outputs before the softmax, exactly enough, may be able to take it
home. For some networks a theorem says that the function determines the weights up to order and
scale of units; here they are found.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import pindown as pn
from pindown.equivalence import identifiable_network
from pindown.geometry import fold_set, on_plane

secret = identifiable_network((4, 4, 3, 1), seed=0)
box = pn.Box([-1] * 4, [1] * 4)


def ask(points):
    """Answer like a server: values, and nothing else."""
    return secret(points)


found = pn.recover(ask, 4, box=box)
print(found)

figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.7))
for ax, network, name in (
    (axes[0], secret, "the secret network's folds"),
    (axes[1], found.network, "the folds that were found"),
):
    plane = on_plane(network, [0, 0, 0.1, 0.2], [1, 0, 0, 0], [0, 1, 0, 0])  # a cut through both
    folds = fold_set(plane.complex)
    colours = np.where(folds.layers == 1, "C0", "C1")
    ax.add_collection(LineCollection(folds.segments, colors=colours, linewidths=2))
    ax.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(True)
    ax.set_title(name, fontsize=11)
figure.supxlabel(f"{found.n_queries:,} queries; largest error on fresh inputs {found.max_error:.0e}")

answer = pn.diff(secret, found.network, box=box, tol=1e-6)
assert answer.verdict == "same"

if __name__ == "__main__":
    figure.savefig("recover.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
