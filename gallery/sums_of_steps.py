"""Sums of 32 sigmoids come within a millionth of a wave that sums of two miss by half its height.

The theorem of universal approximation says that there are units for every error, not how many. Here
random units are added and the best outer weights computed: the largest error is measured on a grid.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import approximation_curve


def target(x):
    """Return what is to be approximated."""
    return np.sin(6 * x)


sizes = [2, 4, 8, 16, 32]
curves = [approximation_curve(target, sizes, random_state=seed) for seed in range(5)]
errors = np.array([curve.errors for curve in curves])

figure, ax = plt.subplots()
for row in errors:
    ax.loglog(sizes, row, "o-", color="#7F7F7F", linewidth=1, markersize=3)
ax.loglog(sizes, np.median(errors, axis=0), color="C0", linewidth=2.5, label="median")
ax.set(xlabel="units", ylabel="largest error", xticks=sizes, xticklabels=[str(n) for n in sizes])
ax.minorticks_off()
ax.set_title("five random families of units")
ax.legend(loc="upper right")

first, *_, last = np.median(errors, axis=0)
assert first > 0.5 and last < 1e-6

if __name__ == "__main__":
    figure.savefig("sums_of_steps.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
