"""A layer for sets has two parameters where a dense one has n², and answers alike in every order.

Maps that commute with all permutations of n numbers are a multiple of the identity plus a multiple
of the mean. Fitted to noisy examples of such a map, the two parameters need a handful of examples;
the dense layer needs as many as it has inputs, and even then it depends on the order.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import equivariant_basis, symmetric

n, sizes = 6, np.array([2, 4, 6, 8, 12, 20, 40])
basis = equivariant_basis(symmetric(n).permuting())
truth = 2.0 * np.eye(n) - 0.3
rng = np.random.default_rng(0)
test = rng.normal(size=(500, n))
errors = np.zeros((2, len(sizes)))
for i, m in enumerate(sizes):
    for _ in range(20):
        X = rng.normal(size=(m, n))
        Y = X @ truth.T + 0.3 * rng.normal(size=(m, n))
        dense = np.linalg.lstsq(X, Y, rcond=None)[0].T
        features = np.stack([(X @ B.T).ravel() for B in basis], axis=1)
        shares = np.linalg.lstsq(features, Y.ravel(), rcond=None)[0]
        tied = np.tensordot(shares, basis, axes=1)
        for row, found in enumerate((dense, tied)):
            errors[row, i] += np.mean((test @ (found - truth).T) ** 2) / 20

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=(1.5, 1))
left.plot(sizes, errors[0], "o-", label=f"dense layer, {n * n} parameters")
left.plot(sizes, errors[1], "s-", label=f"layer for sets, {len(basis)} parameters")
left.set(xscale="log", yscale="log", xlabel="examples", ylabel="mean squared error on new sets")
left.set_xticks([2, 4, 8, 20, 40], labels=["2", "4", "8", "20", "40"])
left.minorticks_off()
left.legend()
right.imshow(tied, cmap="RdBu", vmin=-2, vmax=2)
right.set(title="its weights", xlabel="input", ylabel="output")

order = rng.permutation(n)
assert len(basis) == 2 and np.allclose((test @ tied.T)[:, order], test[:, order] @ tied.T)
assert (errors[1] < errors[0]).all()

if __name__ == "__main__":
    figure.savefig("equivariant_layers.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
