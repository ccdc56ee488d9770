"""Gradient descent ends at the solution nearest to its start, and from zero at the one of least norm.

With fewer samples than weights there are many perfect fits. Descent moves only along the samples, so
what it starts with across them stays: the end is known before the first step. Here one sample and two
weights make a line of solutions.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias.least_squares import descent_limit

X, y = np.array([[1.0, 2.0]]), np.array([3.0])
starts = np.array([[0.0, 0.0], [-1.5, 0.5], [2.5, 1.5], [0.5, -1.2], [2.0, -1.0]])
paths = []
for w in starts:
    path = [w]
    for _ in range(60):
        path.append(path[-1] - 0.05 * X.T @ (X @ path[-1] - y))
    paths.append(np.array(path))
ends = np.array([path[-1] for path in paths])
told = np.array([descent_limit(X, y, start=w) for w in starts])

figure, ax = plt.subplots(figsize=(6, 5))
line = np.linspace(-3, 4, 2)
ax.plot(line, (3 - line) / 2, color="black", label="perfect fits")
for k, path in enumerate(paths):
    colour = "C1" if k == 0 else "C0"
    ax.plot(*path.T, ".-", color=colour, markersize=4, label="from zero" if k == 0 else None)
ax.set(xlabel="first weight", ylabel="second weight", xlim=(-2, 3), ylim=(-1.5, 3), aspect="equal")
ax.set_title("every path goes straight to the line")
ax.legend(loc="upper right")

assert np.abs(ends - told).max() < 1e-6
assert np.allclose(told[0], np.linalg.pinv(X) @ y)

if __name__ == "__main__":
    figure.savefig("nearest_solution.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
