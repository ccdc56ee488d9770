"""Rings become two sides of a line among the squares of the inputs, and kernels hold all powers.

Inner products of weighted monomials are powers of inner products, so nobody has to write the
monomials down. The geometric series and the Gaussian kernel add up the powers of every degree; their
features up to some degree miss them by less and less, the Gaussian's soon by rounding alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn.kernels import (
    GeometricSeries,
    gaussian_power_features,
    geometric_features,
    gram,
    monomials,
)

rng = np.random.default_rng(0)
turn = rng.uniform(0, 2 * np.pi, 120)
radius = np.r_[rng.uniform(0.2, 0.5, 60), rng.uniform(0.7, 0.95, 60)]
X = radius[:, None] * np.c_[np.cos(turn), np.sin(turn)]
squares = monomials(X, 2)[:, [0, 2]]
degrees = np.arange(1, 16)
exact = [GeometricSeries(0.8)(X, X), gram("rbf", X, gamma=0.5)]
missed = np.zeros((2, len(degrees)))
for i, degree in enumerate(degrees):
    F, G = geometric_features(X, 0.8, degree + 1), gaussian_power_features(X, 1.0, degree)
    missed[:, i] = abs(F @ F.T - exact[0]).max(), abs(G @ G.T - exact[1]).max()

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.5))
for ax, points in zip(axes, (X, squares), strict=False):
    ax.plot(*points[:60].T, "o", ms=4)
    ax.plot(*points[60:].T, "s", ms=4)
axes[0].set(title="no line parts the rings", xlabel="first input", ylabel="second input")
axes[1].plot([0, 0.36], [0.36, 0], color="black")
axes[1].set(title="their squares are parted", xlabel="first input squared", ylabel="second squared")
axes[2].semilogy(degrees, missed[0], "o-", label="geometric series")
axes[2].semilogy(degrees, missed[1], "s-", label="Gaussian kernel")
axes[2].set(title="features of a kernel", xlabel="monomials up to degree", ylabel="largest error")
axes[2].legend()

assert (squares[:60].sum(axis=1) < 0.36).all() and (squares[60:].sum(axis=1) > 0.36).all()
assert (np.diff(missed) < 0).all() and missed[1, -1] < 1e-12

if __name__ == "__main__":
    figure.savefig("feature_space.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
