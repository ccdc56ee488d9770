"""The eigenfunctions of the kernel min(x, z) are sines, and 200 points find them.

Mercer's theorem writes a kernel as a sum over functions, each with an eigenvalue: what is learned
easily and what hardly. For this kernel both are known as formulas, and the matrix of the kernel at
the points comes near them.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn.kernels import mercer_spectrum

x = (np.arange(200) + 0.5)[:, None] / 200
found = mercer_spectrum(lambda X, Z: np.minimum(X, Z.T), x, n_terms=6)
rank = np.arange(6)
truth = 1 / (np.pi * (rank + 0.5)) ** 2
functions = found.eigenfunctions(x)
sines = np.sqrt(2) * np.sin(np.pi * (rank + 0.5) * x)
signs = np.sign((functions * sines).sum(axis=0))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
for k in range(3):
    left.plot(x, signs[k] * functions[:, k], label=f"number {k + 1}")
    left.plot(x[::10], sines[::10, k], "o", color=f"C{k}", markersize=3)
left.set(xlabel="x", ylabel="eigenfunction")
left.set_title("found (lines) and true (dots)")
left.legend(loc="lower left")
right.semilogy(rank + 1, found.eigenvalues, "o", label="found")
right.semilogy(rank + 1, truth, "_", color="black", markersize=16, label="1 / (π (k - 1/2))²")
right.set(xlabel="number k", ylabel="eigenvalue")
right.set_title("the higher the wave, the harder")
right.legend(loc="upper right")

assert np.abs(found.eigenvalues / truth - 1).max() < 0.01
assert np.abs(signs * functions - sines).max() < 0.05

if __name__ == "__main__":
    figure.savefig("mercer.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
