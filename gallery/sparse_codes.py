"""One layer of ReLUs reads off which atoms a signal is made of: certified, without a mistake.

A signal is a sum of a few atoms out of 512. If atoms are not too much alike and the weights are
near them, a threshold separates the atoms in the signal from all others, for every signal: the gap
in the histogram is a theorem.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.datasets.sparse_codes import SparseCodingModel, hadamard_dictionary, near_dictionary
from pindown.learn.sparse_coding import recover_support, recovery_certificate, recovery_threshold

model = SparseCodingModel(hadamard_dictionary(256), sparsity=2, low=1.0, high=1.2)
W = near_dictionary(model.dictionary, 0.02)  # every weight vector is off by 0.02
threshold = recovery_threshold(model, delta=0.02)
Y, codes = model.sample(2000)
answers, on = Y @ W.T, codes > 0
found = recover_support(W, Y, threshold)

figure, ax = plt.subplots()
bins = np.linspace(-0.3, 1.5, 120)
ax.hist(answers[~on], bins, color="C0", alpha=0.7, log=True)
ax.hist(answers[on], bins, color="C1", alpha=0.9, log=True)
ax.axvline(threshold, c="black", ls="--")
ax.text(threshold + 0.015, 2e7, "threshold", va="top")
ax.text(0.0, 1e6, "atoms that are\nnot in the signal", color="C0", weight="bold", ha="center")
ax.text(1.1, 1e3, "atoms\nin it", color="C1", weight="bold", ha="center")
ax.set(xlabel="input of a unit", ylabel="how often", ylim=(1, 3e7))
ax.set_title("512 units see 2,000 signals of two atoms each")

assert recovery_certificate(model, delta=0.02) and (found == on).all()

if __name__ == "__main__":
    figure.savefig("sparse_codes.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
