"""A kernel that knows eight symmetries needs far fewer examples for the same error.

If shifting a signal must not change the answer, averaging the kernel over shifts builds that in,
exactly. Each example then counts for its whole orbit: here the curve with the symmetry is the plain
one, moved to the left.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import cyclic, invariance_gain

rng = np.random.default_rng(0)
X = rng.normal(size=(2400, 8))
y = np.cos(X).sum(axis=1) + (X * np.roll(X, 1, axis=1)).sum(axis=1) / 4  # shifts do not change it
sizes = [25, 50, 100, 200, 400, 800, 1600]

gain = invariance_gain(X, y, cyclic(8), sizes, gamma=0.1)
worth = gain.worth(100)
print(gain)

figure, ax = plt.subplots()
ax.plot(sizes, gain.plain, "o-", c="C1", lw=2.5)
ax.plot(sizes, gain.invariant, "o-", c="C0", lw=2.5)
level = gain.invariant[sizes.index(100)]
ax.annotate(
    "",
    (100, level),
    (100 * worth, level),
    arrowprops={"arrowstyle": "<|-|>", "color": "black", "lw": 1.2},
)
ax.text(100 * worth**0.5, level * 0.86, f"{worth:.1f} times fewer", ha="center")
ax.text(60, gain.plain[1] * 1.1, "plain kernel", color="C1", weight="bold")
ax.text(28, gain.invariant[1] * 0.75, "invariant kernel", color="C0", weight="bold")
ax.set(xscale="log", yscale="log", xlabel="examples", ylabel="squared error on new data")
ax.set_xticks(sizes, labels=[str(n) for n in sizes])
ax.minorticks_off()
ax.set_title("what knowing eight shifts is worth")

assert worth > 3 and all(np.less(gain.invariant, gain.plain))

if __name__ == "__main__":
    figure.savefig("invariant_kernel.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
