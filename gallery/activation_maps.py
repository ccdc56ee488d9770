"""A class activation map divides a score among places, and its largest places are on the object.

The network averages features over places before its last layer, so the score of a class is the mean
of a map. Trained with the class alone, never told where, it still looks at the bright square.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from pindown.probes import class_activation_maps

rng = np.random.default_rng(1)
y = rng.integers(0, 2, 400)
corner = rng.integers(1, 11, (400, 2))
X = 0.3 * rng.normal(size=(400, 1, 16, 16)).astype(np.float32)
for image, kind, (r, c) in zip(X, y, corner, strict=True):
    patch = np.ones((4, 4)) if kind else np.indices((4, 4)).sum(axis=0) % 2 * 2.0
    image[0, r : r + 4, c : c + 4] += 1.5 * patch
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
)  # fmt: skip
descent = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(120):
    descent.zero_grad()
    nn.functional.cross_entropy(model(torch.tensor(X[:300])), torch.tensor(y[:300])).backward()
    descent.step()
found = class_activation_maps(model.eval(), X[300:], layer="3")

figure, axes = plt.subplots(2, 4, figsize=(8, 4.2))
for i, (top, bottom) in enumerate(axes.T):
    top.imshow(X[300 + i, 0], cmap="gray")
    bottom.imshow(found.maps[i], cmap="magma")
    top.set(xticks=[], yticks=[], title="checks" if y[300 + i] == 0 else "square")
    bottom.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("image")
axes[1, 0].set_ylabel("map")

peaks = np.array([np.unravel_index(m.argmax(), m.shape) for m in found.maps])
inside = ((peaks >= corner[300:] - 1) & (peaks <= corner[300:] + 4)).all(axis=1)
assert np.allclose(found.maps.mean(axis=(1, 2)) + found.offsets, found.scores, atol=1e-4)
assert (found.classes == y[300:]).mean() > 0.9 and inside.mean() > 0.8

if __name__ == "__main__":
    figure.savefig("activation_maps.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
