"""A kernel is refuted by a few samples: weights with a sum that no inner products can have.

A function of two samples is an inner product of features exactly if no matrix of its values has a
negative eigenvalue. The hyperbolic tangent, which has been used as a kernel, does not pass; the
Gaussian does, with eigenvalues that fall to rounding.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn.kernels import gram, refute_definiteness


def tanh(X, Z):
    """Return the values of what is not a kernel."""
    return np.tanh(X @ Z.T - 1.0)


X = np.random.default_rng(0).normal(size=(40, 2))
spectra = [np.linalg.eigvalsh(gram(kernel, X))[::-1] for kernel in ("rbf", tanh)]
found = refute_definiteness(tanh, X)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6))
for ax, values, name in zip(axes, spectra, ("Gaussian kernel", "hyperbolic tangent"), strict=True):
    rank = np.arange(1, len(values) + 1)
    negative = values < -1e-9
    ax.axhline(0, color="black", lw=0.8)
    ax.plot(rank[~negative], values[~negative], "o", ms=4)
    ax.plot(rank[negative], values[negative], "s", ms=4, color="C5", label="negative")
    ax.set(title=name, xlabel="number", ylabel="eigenvalue", yscale="symlog")
    if negative.any():
        ax.legend()

assert spectra[0].min() > -1e-9 and spectra[1].min() < -1
assert found.refuted and found.form < 0 and not refute_definiteness("rbf", X).refuted

if __name__ == "__main__":
    figure.savefig("kernel_refuted.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
