"""Sorting has no slope where values cross; soft sorting has, and hardly moves values that are near.

Weights form an orbit if the columns of their inner products are all the same up to order. Sorting
the columns and comparing them measures that; the soft sort lets descent reach it smoothly.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pindown.symmetry import cyclic, orbit_init
from pindown.symmetry.discovery import soft_sort, sorted_gram_penalty

values = torch.tensor([[0.3, 2.0, 1.1, 0.5]], dtype=torch.float64)
strengths = np.geomspace(0.1, 30, 60)
softened = np.concatenate([soft_sort(values, float(s)) for s in strengths])
orbit = torch.as_tensor(orbit_init(cyclic(6), 1, 6).T)
off = torch.as_tensor(np.random.default_rng(0).normal(size=(6, 6))) / 6**0.5
shares = np.linspace(0, 1, 25)
penalties = [
    [float(sorted_gram_penalty((1 - t) * orbit + t * off, soft)) for t in shares] for soft in (None, 1.0)
]

figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.6))
left.semilogx(strengths, softened)
left.axhline(float(values.mean()), color="0.6", ls="--", lw=1)
left.text(0.1, float(values.mean()) + 0.04, "mean", color="0.4", fontsize=9)
left.set(xlabel="strength", ylabel="softly sorted values", title="from the sorted values to their mean")
right.plot(shares, penalties[0], label="sorted")
right.plot(shares, penalties[1], "--", label="softly sorted")
right.set(xlabel="way from an orbit to random weights", ylabel="penalty", title="zero at an orbit")
right.legend()

assert np.allclose(softened[0], np.sort(values[0])) and np.ptp(softened[-1]) < 0.2
assert max(p[0] for p in penalties) < 1e-20 and min(p[-1] for p in penalties) > 0.1

if __name__ == "__main__":
    figure.savefig("soft_sort.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
