"""With weights of variance 2 / n signals keep their size through thirty layers of ReLUs.

A little less and they vanish, a little more and they explode, each by a constant factor for every
layer: training could not begin. The recursion says so before a network is made, and networks of 300
units follow it.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import predicted_signal

layers, width = 30, 300
rng = np.random.default_rng(0)
gains = {1.0: "1 / n", 2.0: "2 / n", 3.0: "3 / n"}
seen = {}
for gain in gains:
    x = rng.normal(size=(50, width))
    sizes = []
    for _ in range(layers):
        z = x @ rng.normal(scale=np.sqrt(gain / width), size=(width, width))
        sizes.append(float(np.mean(z**2)))
        x = np.maximum(z, 0.0)
    seen[gain] = np.array(sizes)
told = {gain: predicted_signal(layers, "relu", gain=gain) for gain in gains}

figure, ax = plt.subplots()
for k, (gain, name) in enumerate(gains.items()):
    ax.semilogy(np.arange(1, layers + 1), told[gain], color=f"C{k}", label=f"variance {name}")
    ax.semilogy(np.arange(1, layers + 1), seen[gain], "o", color=f"C{k}", markersize=3)
ax.set(xlabel="layer", ylabel="mean square of the signal")
ax.set_title("predicted (lines) and seen (dots)")
ax.legend(loc="upper left")

assert 0.3 < seen[2.0][-1] / told[2.0][-1] < 3 and seen[1.0][-1] < 1e-8 and seen[3.0][-1] > 1e4

if __name__ == "__main__":
    figure.savefig("first_signals.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
