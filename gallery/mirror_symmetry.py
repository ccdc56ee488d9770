"""Oja's rule on images and their mirror images learns fields that are even or odd.

The covariance of mirrored data commutes with the reflection, so its eigenvectors can only be
symmetric or antisymmetric, and Oja's rule finds the leading one. Nothing tells the unit about
mirrors: the symmetry is in what it sees.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pindown.symmetry.plasticity import oja, parity_of_components

pictures = load_digits().images[:600]
mirror = np.arange(64).reshape(8, 8)[:, ::-1].ravel()
X = pictures.reshape(len(pictures), -1)
mean = X.mean(axis=0)
X = X - (mean + mean[mirror]) / 2
X = X / np.sqrt((X**2).sum(axis=1).mean())
both = np.stack([X, X[:, mirror]], axis=1).reshape(-1, 64)
R = np.eye(64)[mirror]
found = parity_of_components(X, R, 6)
start = np.random.default_rng(0).normal(size=64)
learned = oja(both, start, epochs=60, step=100.0, delay=1000, random_state=0).weights
learned = learned / np.linalg.norm(learned)

figure, axes = plt.subplots(1, 7, figsize=(10, 2.2))
fields = [learned, *np.asarray(found.components).reshape(-1, 64)[:6]]
names = ["Oja's rule", *("even" if p > 0 else "odd" for p in found.parities)]
for ax, field, name in zip(axes, fields, names, strict=True):
    top = np.abs(field).max()
    ax.imshow(field.reshape(8, 8), cmap="RdBu", vmin=-top, vmax=top)
    ax.set(title=name, xticks=[], yticks=[])
axes[0].set_ylabel("weights")
axes[1].set_xlabel("eigenvectors of the covariance, the largest first", loc="left")

off = min(np.linalg.norm(R @ learned - learned), np.linalg.norm(R @ learned + learned))
assert off < 0.1 and set(found.parities.tolist()) == {-1, 1}

if __name__ == "__main__":
    figure.savefig("mirror_symmetry.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
