"""Copies of the data with noise on their inputs give the weights of ridge regression.

Whoever adds noise to training inputs holds the weights back without knowing it. On average the noise
is a penalty on their squares, of a size that follows from its variance; the more noisy copies are
fitted, the nearer the weights come.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import noisy_least_squares

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
y = X @ np.array([2.0, -1.0, 0.5, 0.0]) + 0.3 * rng.normal(size=30)
levels = np.linspace(0.0, 1.5, 16)
told = np.array([noisy_least_squares(X, y, float(s)) for s in levels])


def fitted(level, copies):
    """Return least-squares weights of noisy copies of the data."""
    many = np.tile(X, (copies, 1))
    noisy = many + level * rng.normal(size=many.shape)
    return np.linalg.lstsq(noisy, np.tile(y, copies), rcond=None)[0]


seen = np.array([fitted(s, 2000) for s in levels])
plain = noisy_least_squares(X, y, 0.0)

figure, ax = plt.subplots()
for k in range(4):
    ax.plot(levels, told[:, k], color=f"C{k}", label=f"weight {k + 1}")
    ax.plot(levels, seen[:, k], "o", color=f"C{k}", markersize=4)
ax.set(xlabel="standard deviation of the noise", ylabel="weight")
ax.set_title("ridge (lines) and 2,000 noisy copies (dots)")
ax.legend(loc="upper right")

assert np.abs(seen - told).max() < 0.02 and np.linalg.norm(told[-1]) < 0.5 * np.linalg.norm(plain)

if __name__ == "__main__":
    figure.savefig("noise_as_ridge.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
