"""At the lowest point of a path, the way downhill is at right angles to the path, and only there.

That is Lagrange's condition: the gradient of what is minimised is a multiple of the constraint's.
The residual says how far a point is from it, with the multiplier that fits best.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn.margins import stationarity_residual

angles = np.linspace(-np.pi, np.pi, 721)
path = np.c_[1.2 + np.cos(angles), 0.8 + np.sin(angles)]  # on a circle, g(x) = 0
value = path[:, 0] ** 2 + 2 * path[:, 1] ** 2
down, across = path * [2.0, 4.0], 2 * (path - [1.2, 0.8])
best = -(down * across).sum(axis=1) / (across**2).sum(axis=1)
residual = [
    stationarity_residual(f, [0.0], [g], [m]) for f, g, m in zip(down, across, best, strict=True)
]
low, high = value.argmin(), value.argmax()

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.7))
x, y = np.meshgrid(np.linspace(-0.5, 3, 200), np.linspace(-0.6, 2.3, 200))
left.contour(x, y, x**2 + 2 * y**2, 14, colors="0.75", linewidths=0.8)
left.plot(*path.T, color="black", lw=1.6)
for at, colour in ((low, "C0"), (high, "C1"), (250, "C2")):
    step = down[at] / np.linalg.norm(down[at]) * 0.5
    left.annotate("", path[at] - step, path[at], arrowprops={"color": colour, "width": 1.5})
    left.plot(*path[at], "o", color=colour)
left.set(aspect="equal", xlabel="first variable", ylabel="second variable")
left.set_title("downhill, at three points of a path")
right.plot(angles, residual, color="black")
for at, colour, name in (
    (low, "C0", "lowest point"),
    (high, "C1", "highest point"),
    (250, "C2", "neither"),
):
    right.plot(angles[at], residual[at], "o", color=colour, label=name)
right.set(xlabel="angle along the path", ylabel="residual of Lagrange's condition")
right.set_title("zero at extrema alone")
right.legend()

assert residual[low] < 0.05 and residual[high] < 0.05 and residual[250] > 1

if __name__ == "__main__":
    figure.savefig("constrained_minimum.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
