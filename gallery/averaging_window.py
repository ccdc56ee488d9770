"""Averaging over small shifts keeps slow waves and removes fast ones, by a factor known for each.

Pooling over a window of shifts makes a feature insensitive to where something is, and blurs it. What
is lost is exact: a wave of frequency w comes out multiplied by sin(w b) / (w b), and one that fits
into the window is gone.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import window_multiplier

half = 0.5
t = np.linspace(0, 4 * np.pi, 4000, endpoint=False)
frequencies = np.arange(1, 21)
factors = np.array([window_multiplier(float(w), half) for w in frequencies]) / (2 * half)
shifts = np.linspace(-half, half, 2001)
seen = np.array([np.cos(w * shifts).mean() for w in frequencies])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
signal = np.sin(t) + 0.4 * np.sin(4 * np.pi * t)
averaged = factors[0] * np.sin(t) + 0.4 * window_multiplier(4 * np.pi, half) * np.sin(4 * np.pi * t)
left.plot(t, signal, color="#7F7F7F", label="signal")
left.plot(t, averaged, label="averaged over shifts")
left.set(xlabel="place", title="the fast wave is gone", ylim=(-1.6, 2.4))
left.legend(loc="upper right")
fine = np.linspace(0.1, 20, 400)
right.plot(fine, [window_multiplier(float(w), half) / (2 * half) for w in fine], label="sin(wb) / (wb)")
right.plot(frequencies, seen, "o", markersize=4, label="averages of shifted waves")
right.set(xlabel="frequency w", ylabel="what is left of a wave")
right.set_title("the factor for every frequency")
right.legend(loc="upper right")

assert np.abs(factors - seen).max() < 1e-3 and abs(window_multiplier(4 * np.pi, half)) < 1e-12

if __name__ == "__main__":
    figure.savefig("averaging_window.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
