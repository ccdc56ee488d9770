"""The best fit by straight pieces is found, with the number of pieces and a proof.

Where does a trend turn, and how often? Programs for this start from a guess and stop at a local
optimum. Here breakpoints are free, also between data points, and no other fit with as many pieces
has a smaller error.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn import SegmentedRegressor

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 400))
corners, heights = [0, 2, 4.5, 6, 10], [1, 4, 2.5, 5.5, 3]
y = np.interp(x, corners, heights) + 0.35 * rng.normal(size=400)

model = SegmentedRegressor(max_pieces=6).fit(x, y)
print(model.n_pieces_, "pieces, breakpoints", model.breakpoints_.round(2))

figure, ax = plt.subplots()
ax.plot(x, y, "o", c="0.75", ms=3.5)
grid = np.linspace(0, 10, 1000)
ax.plot(grid, np.interp(grid, corners, heights), c="C1", lw=2, ls="--", label="the truth")
ax.plot(grid, model.predict(grid), c="C0", lw=3, label="the best fit, proved")
for place in model.breakpoints_:
    ax.axvline(place, c="C0", lw=0.8, alpha=0.5)
    ax.text(place, 6.6, f"{place:.2f}", color="C0", ha="center", weight="bold")
ax.set(xlim=(0, 10), ylim=(0, 6.5), xlabel="x", ylabel="y")
ax.set_title(f"{model.n_pieces_} pieces, chosen by BIC; true breakpoints at 2, 4.5 and 6", pad=22)
ax.legend(loc="lower right")

assert model.optimal_ and model.n_pieces_ == 4
assert abs(model.breakpoints_ - [2, 4.5, 6]).max() < 0.2

if __name__ == "__main__":
    figure.savefig("segmented_regression.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
