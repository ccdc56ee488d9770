"""The neurons of a two-layer network turn to two directions that are known beforehand.

Many networks separate these points. Training picks one: the neurons of each sign turn to the
max-margin direction of their class, and forty neurons become two (a few freeze near zero).
`two_layer_limit` computes the two without any training.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import two_layer_limit
from pindown.bias.two_layer import alignment, train_two_layer

rng = np.random.default_rng(0)
angles = np.r_[rng.uniform(0.1, 1.3, 12), rng.uniform(3.4, 4.6, 12)]
X = rng.uniform(0.6, 1.6, (24, 1)) * np.c_[np.cos(angles), np.sin(angles)]
y = np.repeat([1, -1], 12)

limit = two_layer_limit(X, y)
run = train_two_layer(X, y, width=40, steps=6000, record=1000, random_state=2)
found = alignment(run.network, X, y)
print(limit, found, sep="\n")

figure, ax = plt.subplots(figsize=(6.6, 5.8), subplot_kw={"projection": "polar"})
for label, colour in ((1, "C0"), (-1, "C1")):
    rows = y == label
    ax.scatter(angles[rows], np.linalg.norm(X[rows], axis=1), s=26, c=colour, zorder=3)
    limit_angle = np.arctan2(*(limit.positive if label == 1 else limit.negative)[::-1])
    ax.annotate(
        "", (limit_angle, 2.6), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "black", "lw": 2}
    )
for neuron in np.flatnonzero(found.alive):
    path = np.array([state.W[neuron] for state in run.path])
    turn = np.unwrap(np.arctan2(path[:, 1], path[:, 0]))
    turn = np.interp(np.geomspace(1, len(turn), 400), np.arange(1, len(turn) + 1), turn)
    colour = "C0" if run.network.a[neuron] > 0 else "C1"
    ax.plot(turn, np.linspace(1.8, 2.6, len(turn)), c=colour, lw=1.2, alpha=0.7)
ax.set(rticks=[], rlim=(0, 2.75), xticks=[])
ax.spines["polar"].set_visible(False)
ax.set_title("lines: directions of the neurons while training, from inside out", loc="center")
ax.text(
    0.5, -0.04, "arrows: the two directions that theory predicts", ha="center", transform=ax.transAxes
)

assert found.correlations[found.alive].min() > 0.99

if __name__ == "__main__":
    figure.savefig("two_neurons.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
