"""A Gabor function is as narrow in place and in frequency together as the uncertainty bound allows.

A template that sees only a part of an object must be narrow in place, and to ignore small shifts it
must be narrow in frequency. No function is narrower in both than a wave under a bell: the product of
its spreads is one half, that of a box or a triangle is larger.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry.signatures import gabor

t = np.linspace(-60, 60, 2**15, endpoint=False)
shapes = {
    "Gabor": gabor(t, 1.0, 3.0),
    "triangle": np.maximum(0, 1 - np.abs(t) / 2) * np.exp(3j * t),
    "two-sided decay": np.exp(-np.abs(t) + 3j * t),
}


def spread(at, height):
    """Return the standard deviation of a density."""
    p = np.abs(height) ** 2 / np.sum(np.abs(height) ** 2)
    return float(np.sqrt(np.sum(p * at**2) - np.sum(p * at) ** 2))


omega = 2 * np.pi * np.fft.fftfreq(len(t), t[1] - t[0])
products = {name: spread(t, f) * spread(omega, np.fft.fft(f)) for name, f in shapes.items()}

figure, axes = plt.subplots(1, 3, sharey=True, figsize=(9, 3.4))
for ax, (name, f) in zip(axes, shapes.items(), strict=True):
    shown = np.abs(t) < 4
    ax.plot(t[shown], np.real(f)[shown])
    ax.plot(t[shown], np.abs(f)[shown], "--", color="#7F7F7F")
    ax.set(title=f"{name}: {products[name]:.3f}", xlabel="place")
axes[0].set_ylabel("template (title: product of spreads)")

assert abs(products["Gabor"] - 0.5) < 1e-3
assert min(products["triangle"], products["two-sided decay"]) > 0.53

if __name__ == "__main__":
    figure.savefig("gabor_waves.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
