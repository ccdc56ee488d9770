"""A kernel is a filter: ridge regression keeps the frequencies its spectrum holds and drops the rest.

On the line, kernel ridge regression multiplies the Fourier transform of the data by
spectrum / (spectrum + penalty). A Gaussian kernel cuts high frequencies off, a Laplace kernel lets
some of them through, and the sinc kernel is a band pass with a sharp edge.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from pindown.learn.kernels import Laplace, Sinc, ridge_filter

penalty = 0.01
frequencies = np.linspace(0.0, 12.0, 400)
kernels = {"Gaussian": RBF(0.5), "Laplace": Laplace(0.5), "sinc": Sinc(5.0)}
kept = {name: ridge_filter(kernel, frequencies, penalty) for name, kernel in kernels.items()}

figure, ax = plt.subplots()
for name, line in kept.items():
    ax.plot(frequencies, line, label=name)
ax.set(xlabel="frequency", ylabel="share that is kept", ylim=(0, 1.05), xlim=(0, 12))
ax.set_title("kernel ridge regression as a filter of waves")
ax.legend(loc="upper right")
ax.grid(axis="y")

high = frequencies > 9
assert kept["Gaussian"][high].max() < kept["Laplace"][high].min()
assert kept["sinc"][frequencies > 5.1].max() == 0.0 and kept["sinc"][frequencies < 4.9].min() > 0.9

if __name__ == "__main__":
    figure.savefig("kernels_as_filters.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
