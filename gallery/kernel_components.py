"""Three kernel principal components tell an inner ring from an outer one, and no straight ones do.

Principal components are directions, and in the plane both rings spread alike in all of them. A
Gaussian kernel compares points by nearness alone; components of its centred matrix are curved
functions of the plane, and a straight cut through them separates the rings.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from pindown.learn.kernels import kernel_components
from pindown.learn.margins import hard_margin

rng = np.random.default_rng(0)
radius = np.repeat([1.0, 3.0], 60) + 0.1 * rng.normal(size=120)
angle = rng.uniform(0, 2 * np.pi, 120)
ring = np.repeat([-1, 1], 60)
X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
straight = kernel_components(X @ X.T).scores
curved = kernel_components(RBF(1.0)(X), n_components=3).scores


def mistakes(features):
    """Count mistakes of the best linear least-squares rule."""
    A = np.column_stack([features, np.ones(len(ring))])
    return int(np.sum(A @ np.linalg.lstsq(A, ring, rcond=None)[0] * ring <= 0))


figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
spread = np.argsort(-np.abs([np.corrcoef(c, ring)[0, 1] for c in curved.T]))[:2]
for ax, shown, name in zip(axes, (straight, curved[:, spread]), ("straight", "kernel"), strict=True):
    ax.scatter(*shown[ring < 0].T, s=12, label="inner ring")
    ax.scatter(*shown[ring > 0].T, s=12, label="outer ring")
    ax.set(title=f"{name} components", xlabel="a component", ylabel="another one")
axes[1].legend(loc="best")

assert mistakes(straight) > 30 and hard_margin(curved, ring).margin > 0

if __name__ == "__main__":
    figure.savefig("kernel_components.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
