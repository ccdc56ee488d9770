"""The layer that neurons read from predicts them best, and noise sets how well any model can.

Responses are regressed on the units of each layer, on stimuli left out in turn. The correlation is
divided by how well repeats of the same recording agree; without that, noisy neurons would make a
perfect model look bad.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.probes import neural_predictivity, response_reliability

rng = np.random.default_rng(0)
stimuli = rng.normal(size=(300, 20))
layers = [stimuli]
for _ in range(4):
    W = rng.normal(size=(20, 20)) * np.sqrt(2 / 20)
    layers.append(np.maximum(layers[-1] @ W + 0.1, 0))
signal = layers[2] @ rng.normal(size=(20, 12)) / 5
signal /= signal.std(axis=0)
noises = (0.5, 1.0, 2.0)
raw, corrected = np.zeros((2, len(noises), len(layers)))
for i, noise in enumerate(noises):
    repeats = signal + noise * rng.normal(size=(6, *signal.shape))
    trust = response_reliability(repeats)
    for j, layer in enumerate(layers):
        raw[i, j] = neural_predictivity(layer, repeats.mean(axis=0), method="ridge").value
        corrected[i, j] = neural_predictivity(
            layer, repeats.mean(axis=0), method="ridge", reliability=trust
        ).value

figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.6), sharey=True)
titles = ("correlations", "divided by the reliability")
for ax, values, name in zip(axes, (raw, corrected), titles, strict=True):
    for line, noise in zip(values, noises, strict=True):
        ax.plot(range(len(layers)), line, "o-", label=f"noise {noise:g}")
    ax.set(xlabel="layer (neurons read from 2)", title=name, xticks=range(len(layers)))
axes[0].set(ylabel="predictivity", ylim=(0, 1.1))
axes[0].legend(loc="lower left")

assert (raw.argmax(axis=1) == 2).all() and (corrected.argmax(axis=1) == 2).all()
assert np.ptp(raw[:, 2]) > 2 * np.ptp(corrected[:, 2]) and corrected[:, 2].min() > 0.85

if __name__ == "__main__":
    figure.savefig("neural_predictivity.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
