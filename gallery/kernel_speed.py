"""A function of kernel norm one changes between two inputs by no more than their kernel distance.

This is why a small norm means a smooth function: the kernel says how different two inputs are, and
the function can not tell them apart by more. Three hundred random functions of a Gaussian kernel stay
below the curve, and one for each distance touches it.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn.kernels import KernelExpansion, kernel_distance

rng = np.random.default_rng(0)
gaps = np.linspace(0.01, 4.0, 60)
limit = np.array([kernel_distance("rbf", [[0.0]], [[g]], gamma=0.5).item() for g in gaps])
changes = []
for _ in range(300):
    centres, weights = rng.uniform(-4, 8, (6, 1)), rng.normal(size=6)
    f = KernelExpansion("rbf", centres, weights, {"gamma": 0.5})
    values = f(np.append(0.0, gaps)[:, None]) / f.norm
    changes.append(np.abs(values[1:] - values[0]))
changes = np.array(changes)
touching = []
for g, most in zip(gaps, limit, strict=True):
    f = KernelExpansion("rbf", [[0.0], [g]], [1.0, -1.0], {"gamma": 0.5})
    touching.append(float(np.ptp(f([[0.0], [g]]))) / f.norm / most)

figure, ax = plt.subplots()
ax.plot(gaps, changes[::12].T, color="C0", linewidth=0.6, alpha=0.6)
ax.plot(gaps, limit, color="black", label="kernel distance")
ax.set(xlabel="distance of two inputs", ylabel="change of the function")
ax.set_title("twenty-five functions of norm one")
ax.legend(loc="upper left")

assert (changes <= limit + 1e-9).all() and np.allclose(touching, 1.0, atol=1e-6)

if __name__ == "__main__":
    figure.savefig("kernel_speed.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
