"""Each norm of an attack has its own most robust line, and it is the one of largest margin.

How far must a point move to cross a line? That depends on how moves are measured. For every norm the
line that keeps its distance from all points is a small program, and no other one is more robust in
that norm; the shapes around the points touch it.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Polygon

from pindown.bias import max_margin

X = np.array([[1.0, 2.2], [2.0, 0.6], [2.6, 2.4], [-1.0, -0.4], [-2.2, 0.4], [-0.6, -2.0]])
y = np.array([1, 1, 1, -1, -1, -1])
turn = np.linspace(0, 2 * np.pi, 200)
shapes = {  # the ball of an attack, and the norm of w that measures the margin against it
    "l2": (np.column_stack([np.cos(turn), np.sin(turn)]), 2),
    "linf": (np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]), 1),
    "l1": (np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]), np.inf),
}
dual = {"l2": "l2", "linf": "l1", "l1": "linf"}
lines = {name: np.asarray(max_margin(X, y, norm=dual[name]).w) for name in shapes}


def radius(w, order):
    """Return how far every point may move."""
    return float(np.min(y * (X @ w)) / np.linalg.norm(w, order))


figure, axes = plt.subplots(1, 3, sharey=True, figsize=(9, 3.4))
for ax, (name, (ball, order)) in zip(axes, shapes.items(), strict=True):
    w, r = lines[name], radius(lines[name], order)
    for point, label in zip(X, y, strict=True):
        ax.add_patch(Polygon(point + r * ball, color="C0" if label > 0 else "C1", alpha=0.3))
    ax.scatter(*X.T, s=14, c=np.where(y > 0, "C0", "C1"), zorder=3)
    along = np.array([-w[1], w[0]]) / np.linalg.norm(w)
    ax.plot(*np.outer([-6, 6], along).T, color="black")
    ax.set(
        title=f"{name}: margin {r:.2f}", xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xlabel="first input"
    )
axes[0].set_ylabel("second input")

best = {name: radius(lines[name], order) for name, (_, order) in shapes.items()}
angles = [np.array([np.cos(a), np.sin(a)]) for a in turn]
assert all(max(radius(w, shapes[n][1]) for w in angles) <= best[n] + 1e-6 for n in shapes)

if __name__ == "__main__":
    figure.savefig("three_margins.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
