"""A penalty on absolute values makes coefficients zero, one on squares only makes them small.

A sum of ten Chebyshev polynomials is fitted to a noisy cubic, with a penalty that grows to the right.
Squares hold all coefficients back a little; absolute values switch them off one after the other, and
the ones that stay last are those of the truth.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias.least_squares import fit_polynomial

rng = np.random.default_rng(3)
x = np.linspace(-1, 1, 40)
y = 3 * x**3 - x + 0.1 * rng.normal(size=40)
penalties = np.geomspace(1e-2, 20, 25)
found = {p: np.array([fit_polynomial(x, y, 9, a, p=p).coefficients for a in penalties]) for p in (2, 1)}
zeros = {p: np.sum(np.abs(path) < 1e-6, axis=1) for p, path in found.items()}

figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 3.8))
for ax, (p, path) in zip(axes, found.items(), strict=True):
    for power, line in enumerate(path.T):
        true = power in (1, 3)
        ax.semilogx(
            penalties,
            line,
            color=f"C{power // 2}" if true else "#7F7F7F",
            label=f"degree {power}" * true,
        )
    ax.set(xlabel="penalty", title="squares" if p == 2 else "absolute values")
axes[0].set(ylabel="coefficient", ylim=(-0.2, 1.7))
axes[1].legend(loc="upper right")

assert zeros[2].max() == 0 and zeros[1][-5:].min() >= 7

if __name__ == "__main__":
    figure.savefig("penalties.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
