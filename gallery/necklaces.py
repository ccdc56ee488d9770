"""The 64 necklaces of six beads are 13 up to turning and flipping, each seen 12 / symmetries times.

Being carried to one another sorts samples into orbits. The more elements of the group leave a sample
as it is, the fewer different images it has: the two numbers multiply to the order of the group.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import dihedral, orbit_partition, stabiliser

group = dihedral(6).permuting()
beads = (np.arange(64)[:, None] >> np.arange(6)) % 2
labels = orbit_partition(group, beads).labels
first = [int(np.flatnonzero(labels == k)[0]) for k in range(labels.max() + 1)]
sizes = [int((labels == k).sum()) for k in range(labels.max() + 1)]
kept = [len(stabiliser(group, beads[i].astype(float))) for i in first]

angles = np.pi / 2 - 2 * np.pi * np.arange(6) / 6
figure, axes = plt.subplots(2, 7, figsize=(9, 3.5))
for ax in axes.flat:
    ax.axis("off")
for ax, i, size, many in zip(axes.flat, first, sizes, kept, strict=False):
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.6"))
    ax.scatter(
        np.cos(angles), np.sin(angles), s=90, c=beads[i], cmap="Blues", ec="0.3", vmax=1.3, zorder=3
    )
    ax.set(aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    ax.set_title(f"{size} x {many}", loc="center", fontsize=11)
axes[1, 6].text(0.5, 0.5, "images x\nsymmetries\n= 12", ha="center", va="center")

assert len(first) == 13 and sum(sizes) == 64
assert all(size * many == group.order for size, many in zip(sizes, kept, strict=True))

if __name__ == "__main__":
    figure.savefig("necklaces.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
