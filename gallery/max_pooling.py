"""A max-pooling network finds the pattern that decides, wherever it stands among others.

Each sample is a row of patches in random order. One patch decides the class, and the network is
told only the class of the row, not which patch it was. What its units learn is that pattern, as a
theorem promises.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import hadamard

from pindown.datasets.synthetic import pattern_detection
from pindown.learn import MaxPoolClassifier

H = hadamard(4)
tiles = np.array([np.outer(a, b).ravel() / 4 for a in H for b in H])[[6, 9, 5, 10, 3, 12, 7, 13, 11, 15]]
X, y, patterns = pattern_detection(400, patterns=tiles, n_patches=6)
model = MaxPoolClassifier(n_units=1000, random_state=0, verbose=0).fit(X, y)
fresh, labels, _ = pattern_detection(1000, patterns=tiles, n_patches=6, random_state=1)

figure = plt.figure(figsize=(6.6, 3.7))
grid = figure.add_gridspec(4, 9, width_ratios=[1] * 6 + [0.5, 2.2, 2.2])
for row, sample in enumerate([*np.flatnonzero(y == 1)[:2], *np.flatnonzero(y == -1)[:2]]):
    for column in range(6):
        ax = figure.add_subplot(grid[row, column])
        ax.imshow(X[sample, column].reshape(4, 4), cmap="Greys")
        ax.set(xticks=[], yticks=[])
        decides = X[sample, column] @ tiles[0 if y[sample] > 0 else 1] > 0.5
        for spine in ax.spines.values():
            spine.set(visible=True, color="C1" if decides else "0.7", linewidth=3 if decides else 0.8)
        if column == 0:
            ax.set_ylabel("+" if y[sample] > 0 else "−", rotation=0, size=18, va="center", labelpad=10)
for column, name in ((1, "found: +"), (0, "found: −")):
    ax = figure.add_subplot(grid[1:3, 8 - column])
    ax.imshow(model.patterns_[column].reshape(4, 4), cmap="Greys")
    ax.set(xticks=[], yticks=[])
    ax.set_title(name, loc="center", color="C1")
figure.suptitle("samples (framed: what decides), and what was found")

assert model.score(fresh, labels) == 1.0
assert model.patterns_[1] @ tiles[0] > 0.98 and model.patterns_[0] @ tiles[1] > 0.98

if __name__ == "__main__":
    figure.savefig("max_pooling.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
