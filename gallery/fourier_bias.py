"""A fully connected linear network learns all frequencies, a convolutional one only a few.

Both can express exactly the same functions, the linear ones. What differs is which of them training
finds: the least Euclidean norm in one case, the least sum of Fourier amplitudes in the other.
Architecture decides even where it adds no expressive power.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias.margins import linear_network_limit, train_linear_network

rng = np.random.default_rng(0)
n, d = 12, 32
wave = np.cos(2 * np.pi * 3 * np.arange(d) / d)
X = rng.normal(size=(n, d))
y = np.sign(X @ wave)
X += 0.15 * y[:, None] * wave

figure, axes = plt.subplots(2, 1, figsize=(6.6, 4.4), sharex=True, sharey=True)
shares = {}
for ax, architecture, colour in zip(axes, ("connected", "convolution"), ("C0", "C1"), strict=True):
    limit = linear_network_limit(X, y, architecture, depth=2)
    run = train_linear_network(X, y, architecture, depth=2, steps=6000)
    spectrum = abs(np.fft.rfft(run.beta[-1]))
    predicted = abs(np.fft.rfft(limit.direction))
    spectrum, predicted = spectrum / np.linalg.norm(spectrum), predicted / np.linalg.norm(predicted)
    ax.bar(np.arange(len(spectrum)), spectrum, color=colour, alpha=0.45, label="trained")
    ax.plot(np.arange(len(spectrum)), predicted, "_", c="black", ms=14, mew=2, label="predicted")
    ax.set_title({"connected": "fully connected", "convolution": "two convolutions"}[architecture])
    shares[architecture] = np.sort(spectrum**2)[-4:].sum()
    assert run.objective()[-1] < 1.05 * limit.objective
axes[0].legend(loc="upper right", ncols=2)
axes[1].set(xlabel="frequency", xticks=range(0, 17, 2))
figure.supylabel("amplitude")

assert shares["convolution"] > 0.9 > shares["connected"]  # four frequencies hold nearly all

if __name__ == "__main__":
    figure.savefig("fourier_bias.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
