"""Around each input, the largest square without a change of class is computed exactly.

An attack that fails proves nothing. Here each square reaches to the nearest input of another class,
in the maximum norm: its radius is proved from both sides, by a certificate inside and by a witness
on its edge.
"""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle
from sklearn.datasets import make_moons
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.geometry import level_set
from pindown.guarantees import minimum_distance

X, y = make_moons(26, noise=0.08, random_state=4)
model = MLPClassifier((10, 10), solver="lbfgs", alpha=0.3, max_iter=600, random_state=0).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)
distances = [minimum_distance(net, x, "linf") for x in X]

figure, ax = plt.subplots(figsize=(6.6, 4.8))
for x, label, found in zip(X, y, distances, strict=True):
    corner = x - found.lower
    ax.add_patch(
        Rectangle(corner, 2 * found.lower, 2 * found.lower, fc=f"C{label}", ec="white", alpha=0.28)
    )
    ax.plot(*found.witness, "x", c="black", ms=4, mew=1.2, zorder=4)
for chain in level_set(net, pn.Box([-2, -1.5], [3, 2])).chains:
    ax.plot(*chain.T, c="black", lw=2)
for label in (0, 1):
    ax.scatter(*X[y == label].T, s=16, c=f"C{label}", zorder=3)
ax.set(xlim=(-1.7, 2.7), ylim=(-1.3, 1.75), aspect="equal", xticks=[], yticks=[])
ax.spines[:].set_visible(False)
ax.set_title("every square reaches to the boundary")
ax.set_xlabel("crosses: the nearest inputs of the other class")

assert all(found.complete and found.upper - found.lower < 1e-5 for found in distances)

if __name__ == "__main__":
    figure.savefig("certified_squares.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
