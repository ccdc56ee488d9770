"""A network that tells stripes apart needs two of 128 frequencies, and its mask says which.

The mask keeps as few frequencies as it can while the answers stay. What it keeps is all the network
needs; what it drops, shown alone, leaves it guessing. Here the truth is known, because the classes
differ in one wave each.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pindown.probes import fourier_mask, mask_check

rng = np.random.default_rng(0)
grid = np.arange(16) * 2 * np.pi / 16
waves = np.stack([np.cos(3 * grid)[None, :] * np.ones((16, 1)), np.cos(3 * grid)[:, None] * np.ones(16)])
y = rng.integers(0, 2, 300)
X = (waves[y] + 0.5 * rng.normal(size=(300, 16, 16)))[:, None].astype(np.float32)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 2))
descent = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(150):
    descent.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.tensor(X)), torch.tensor(y)).backward()
    descent.step()
found = fourier_mask(model.eval(), X[:150], y[:150], steps=300, seed=0, verbose=0)
check = mask_check(model, found.mask, X[150:], y[150:], seed=0)

figure, axes = plt.subplots(1, 3, figsize=(9, 3.4))
for ax, image, title in zip(
    axes, X[[np.argmin(y), np.argmax(y)], 0], ("class 0", "class 1"), strict=False
):
    ax.imshow(image, cmap="gray")
    ax.set(title=title, xticks=[], yticks=[])
picture = axes[2].imshow(np.fft.fftshift(found.mask), extent=(-8.5, 7.5, 7.5, -8.5), cmap="magma")
axes[2].set(title="the mask", xlabel="waves across", ylabel="waves down")
axes[2].set_xticks([-3, 0, 3])
axes[2].set_yticks([-3, 0, 3])
figure.colorbar(picture, ax=axes[2], label="share kept")

large = {tuple(np.minimum(k, 16 - k)) for k in np.argwhere(found.mask > 0.5 * found.mask.max())}
assert large == {(0, 3), (3, 0)}
assert check.masked > 0.95 and check.complement < 0.7

if __name__ == "__main__":
    figure.savefig("fourier_mask.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
