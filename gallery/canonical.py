"""Copies of a network with shuffled and rescaled units become equal in their canonical form.

To compare two checkpoints weight by weight, to hash a model, or to average two, one has to undo
what the function does not see: the order and the scale of hidden units. `canonical` picks one
representative of all such copies.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.equivalence import apply, random_symmetry

X, y = load_digits(return_X_y=True)
model = MLPClassifier((32, 32), max_iter=30, random_state=0).fit(X / 16, y)
net = pn.ReluNetwork.from_sklearn(model)
copy = apply(random_symmetry(net, seed=1), net)


def weights(network):
    """Return all weights in one vector."""
    return np.concatenate([W.ravel() for W, _ in network.layers])


figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.6))
pairs = ((net, copy, "as they are"), (pn.canonical(net), pn.canonical(copy), "canonical forms"))
for ax, (one, other, name), colour in zip(axes, pairs, ("C1", "C0"), strict=True):
    ax.plot(weights(one), weights(other), ".", ms=3, alpha=0.35, c=colour)
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xlabel="weights of one copy")
    ax.set_title(name)
axes[0].set_ylabel("weights of the other")

assert not np.allclose(weights(net), weights(copy))
assert np.allclose(weights(pn.canonical(net)), weights(pn.canonical(copy)), atol=1e-12)

if __name__ == "__main__":
    figure.savefig("canonical.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
