"""Against the best discriminator, the generator's loss is a divergence, least when it makes the data.

For densities p of the data and q of the generator the best answer is p/(p + q), and the value of the
game is then twice their Jensen-Shannon divergence minus log 4. Here q is a normal density whose mean
moves along; no other discriminator does better against it.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.probes.gan import gan_value, jensen_shannon, optimal_discriminator

x = np.linspace(-6, 8, 600)


def normal(mean):
    """Return a normal density on the grid."""
    density = np.exp(-((x - mean) ** 2) / 2)
    return density / density.sum()


data, means = normal(1.0), np.linspace(-3, 5, 81)
best = [gan_value(data, normal(m), optimal_discriminator(data, normal(m))) for m in means]
fixed = optimal_discriminator(data, normal(-1.0))
others = [gan_value(data, normal(m), np.clip(fixed, 1e-9, 1 - 1e-9)) for m in means]
formula = [2 * jensen_shannon(data, normal(m)) - np.log(4) for m in means]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(x, data, label="data p")
left.plot(x, normal(-1.0), label="generator q")
left.plot(x, fixed * data.max(), c="0.4", ls="--", label="best discriminator (scaled)")
left.set(xlabel="outcome", ylabel="density", yticks=[], xlim=(-5, 13))
left.legend(loc="center right", fontsize=8)
right.plot(means, best, label="best discriminator")
right.plot(means, others, c="0.4", ls="--", label="the one on the left")
right.axhline(-np.log(4), c="C3", lw=1.2, label="minus log 4")
right.set(xlabel="mean of the generator", ylabel="value of the game", ylim=(-2.2, 0.9))
right.legend(loc="upper right", fontsize=8)

assert np.allclose(best, formula, atol=1e-9)
assert means[np.argmin(best)] == 1.0 and np.all(np.array(best) >= np.array(others) - 1e-12)

if __name__ == "__main__":
    figure.savefig("gan_game.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
