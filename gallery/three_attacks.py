"""Three ways to ask for an attack: within a radius, at a price, or the shortest that is enough.

The first goes to a corner of the box against the sign of the gradient, the second as far as the price
of its length allows, the third to the boundary of the classifier made straight, again and again. For
a network none of them needs to be the nearest error.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from pindown.probes import attack

torch.manual_seed(2)
X = torch.randn(400, 2) * 1.2
y = (X[:, 1] > 0.6 * torch.sin(2.0 * X[:, 0])).long()
net = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 2))
optimiser = torch.optim.Adam(net.parameters(), 0.02)
for _ in range(250):
    optimiser.zero_grad()
    nn.functional.cross_entropy(net(X), y).backward()
    optimiser.step()
points = np.array([[-1.4, 0.6], [-0.3, 0.9], [1.0, -0.4], [1.9, 0.9]], dtype=np.float32)
found = {
    "fast gradient sign, within 0.4": attack(net, points, radius=0.4, method="fgsm"),
    "regularised, at a price": attack(net, points, norm="l2", strength=0.05),
    "DeepFool, to the boundary": attack(net, points, norm="l2", method="deepfool"),
}

a, b = np.meshgrid(np.linspace(-2.6, 3, 220), np.linspace(-1.6, 2.2, 180))
with torch.no_grad():
    grid = net(torch.as_tensor(np.c_[a.ravel(), b.ravel()], dtype=torch.float32))
score = (grid[:, 1] - grid[:, 0]).reshape(a.shape)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True)
for ax, (name, result) in zip(axes, found.items(), strict=True):
    ax.contour(a, b, score, [0], colors="0.4")
    ax.contourf(a, b, score, [-99, 0, 99], colors=["#e8eef6", "#fbeee8"])
    for x, end in zip(points, np.asarray(result.X), strict=True):
        ax.annotate("", end, x, arrowprops={"arrowstyle": "->", "color": "C5", "lw": 1.8})
    ax.plot(*points.T, "o", color="black", ms=5)
    if "sign" in name:
        for x in points:
            ax.add_patch(plt.Rectangle(x - 0.4, 0.8, 0.8, fill=False, color="0.6", ls="--", lw=1))
    ax.set(title=name, xlabel="first input", aspect="equal", xlim=(-2.6, 3), ylim=(-1.6, 2.2))
axes[0].set_ylabel("second input")

sign, priced, fool = (np.asarray(result.X) - points for result in found.values())
assert np.allclose(np.abs(sign), 0.4, atol=1e-5) and np.linalg.norm(priced, axis=1).max() < 0.8
with torch.no_grad():
    before, after = (
        net(torch.as_tensor(p, dtype=torch.float32)).argmax(dim=1)
        for p in (points, points + 1.02 * fool)
    )
assert (before != after).all()

if __name__ == "__main__":
    figure.savefig("three_attacks.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
