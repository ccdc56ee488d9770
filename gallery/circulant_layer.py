"""Shift the input, and the responses of a convolution shift along; what is pooled stays as it was.

The units of such a layer are all shifts of one template, so its matrix is circulant: every row is
the one above, moved on by one. Zeros at the border in place of wrapping around break it.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import cyclic, pooled_features
from pindown.symmetry.signatures import orbit_matrix

n, moved = 24, 7
rng = np.random.default_rng(2)
group = cyclic(n)
template = np.exp(-((np.arange(n) - 4) ** 2) / 6) - 0.6 * np.exp(-((np.arange(n) - 8) ** 2) / 6)
signal = np.convolve(np.tile(rng.normal(size=n), 3), np.ones(4) / 2, "same")[n : 2 * n]
shifted = np.roll(signal, moved)
weights = orbit_matrix(template, group)
responses = np.maximum(np.array([signal, shifted]) @ weights, 0)
pooled = pooled_features(np.array([signal, shifted]), template[None], group)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), width_ratios=(1, 1.3, 1.3))
axes[0].imshow(weights.T, cmap="RdBu", vmin=-1, vmax=1)
axes[0].set(title="weights", xlabel="input", ylabel="unit")
for ax, lines, name in ((axes[1], (signal, shifted), "inputs"), (axes[2], responses, "responses")):
    ax.plot(lines[0], label="as it is")
    ax.plot(lines[1], "--", label=f"shifted by {moved}")
    ax.set(title=name, xlabel="place", ylabel="value", ylim=(None, 1.45 * np.max(lines)))
    ax.legend(fontsize=9, ncols=2, loc="upper center")
sums = f"pooled: {pooled[0, 0]:.3f} and {pooled[1, 0]:.3f}"
axes[2].text(0.5, 0.74, sums, ha="center", transform=axes[2].transAxes, fontsize=9)

assert np.allclose(np.roll(responses[0], moved), responses[1])
assert np.allclose(pooled[0], pooled[1])

if __name__ == "__main__":
    figure.savefig("circulant_layer.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
