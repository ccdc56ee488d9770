"""Slow waves are learned first: the tangent kernel says how long each frequency takes.

A network that is stopped early is smooth, and noise is fitted last. The kernel's eigenvalues give
the time for every frequency, here for a wide network on the circle.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import infinite_ntk, ntk_predict, spectral_bias

angles = 2 * np.pi * np.arange(128) / 128
circle = np.c_[np.cos(angles), np.sin(angles), np.ones(128)]
K = infinite_ntk(circle)
waves = (1, 4, 16)
target = sum(np.cos(k * angles + k) for k in waves)
moments = np.array(
    [spectral_bias(K, np.cos(k * angles)).time_to(0.75) for k in waves]
)  # half the amplitude

times = np.geomspace(moments[0] / 30, moments[-1] * 30, 200)
course = ntk_predict(K, target, times).train
spectrum = abs(np.fft.rfft(course, axis=1)[:, waves]) / 64

figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.6, 4.8), height_ratios=[1, 1.2])
for wave, colour in zip(range(3), ("C0", "C1", "C2"), strict=True):
    top.plot(times, spectrum[:, wave], c=colour)
    top.text(
        moments[wave],
        1.07,
        f"{waves[wave]} waves" if wave else "1 wave",
        color=colour,
        weight="bold",
        ha="center",
    )
top.set(xscale="log", xlabel="training time", ylim=(0, 1.25), yticks=[0, 1], xlim=(times[0], times[-1]))
top.set_title("share of each wave that has been learned", pad=4)
for moment, colour in zip(3 * moments, ("C0", "C1", "C2"), strict=True):
    bottom.plot(angles, course[np.searchsorted(times, moment)], c=colour)
bottom.plot(angles, target, ".", c="black", ms=4)
bottom.set(xlabel="angle", xticks=[], yticks=[])
bottom.set_title("the function when each has been learned; dots: the data", pad=4)

assert moments[0] < moments[1] / 5 < moments[2] / 25

if __name__ == "__main__":
    figure.savefig("low_frequencies_first.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
