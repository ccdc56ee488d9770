"""Noise must be about the square root of the dimension longer than an attack to do the same.

A classifier that shrugs off noise may still fall to a tiny chosen change. For linear models the
ratio is known exactly, and it grows with the number of inputs: on images of 28 by 28 pixels it is
about 28.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown import ReluNetwork
from pindown.probes import noise_versus_adversarial

rng = np.random.default_rng(0)
dimensions = np.unique(np.geomspace(2, 3000, 25).astype(int))
ratios, measured = [], []
for d in dimensions:
    w, x = rng.normal(size=d), rng.normal(size=d)
    plane = ReluNetwork.from_layers([(w[None], [0.0])])
    found = noise_versus_adversarial(plane, x, probability=0.1587)  # one standard deviation
    ratios.append(found.ratio)
    noise = rng.normal(size=(4000, d))
    noise *= found.ratio * found.margin / np.sqrt(d)  # as long, on average, as the ratio says
    measured.append(np.mean(np.sign((x + noise) @ w) != np.sign(x @ w)))

figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.7))
left.loglog(dimensions, np.sqrt(dimensions), c="0.6", lw=5, alpha=0.5)
left.loglog(dimensions, ratios, "o", c="C0", ms=5)
left.text(40, 3.2, "$\\sqrt{d}$", color="0.4", size=14)
left.set(xlabel="inputs d", xticks=[10, 100, 1000], yticks=[1, 10, 50], yticklabels=["1", "10", "50"])
left.set_title("length of noise / of an attack", fontsize=11)
right.semilogx(dimensions, measured, "o", c="C1", ms=5)
right.axhline(0.1587, c="0.6", lw=5, alpha=0.5)
right.set(
    xlabel="inputs d",
    ylim=(0, 0.4),
    xticks=[10, 100, 1000],
    yticks=[0, 0.16, 0.4],
    yticklabels=["0", "16 %", "40 %"],
)
for ax in (left, right):
    ax.minorticks_off()
    ax.set_xticklabels(["10", "100", "1,000"])
right.set_title("how often that noise succeeds", fontsize=11)

assert np.allclose(ratios, np.sqrt(dimensions), rtol=1e-3)
assert abs(np.array(measured) - 0.1587).max() < 0.035

if __name__ == "__main__":
    figure.savefig("noise_is_harmless.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
