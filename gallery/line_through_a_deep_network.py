"""Between two images every bend of a deep network is known; in between it is straight.

Plots of a network along a line usually come from a grid of inputs and hide what lies between. Here
the places where a ReLU switches are computed one after the other, so that the broken line below is
the network itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.geometry import along_segment

X, y = load_digits(return_X_y=True)
X = X / 16
model = MLPClassifier((96, 96, 96), max_iter=30, random_state=0).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)

one, eight = X[y == 1][3], X[y == 8][5]
folds = along_segment(net, one, eight)

figure, ax = plt.subplots()
ax.vlines(folds.t, -8, 10, color="0.9", lw=0.7)
for digit, logits in enumerate(folds.values.T):
    colour = {1: "C0", 8: "C1"}.get(digit, "0.75")
    ax.plot(folds.knots, logits, c=colour, lw=2.5 if digit in {1, 8} else 1.2)
ax.text(0.02, folds.values[0, 1] + 0.8, "class 1", color="C0", weight="bold")
ax.text(0.98, folds.values[-1, 8] + 0.8, "class 8", color="C1", weight="bold", ha="right")
for place, image in ((0.0, one), (0.86, eight)):
    inset = ax.inset_axes([place, -0.27, 0.14, 0.22])
    inset.imshow(image.reshape(8, 8), cmap="Greys")
    inset.axis("off")
ax.set(xlim=(0, 1), ylim=(-8, 10), xticks=[], ylabel="logits")
ax.set_title(f"from a one to an eight: {len(folds.t)} ReLUs switch, {folds.n_pieces} straight pieces")

middle = (folds.knots[1:] + folds.knots[:-1]) / 2
halfway = (folds.values[1:] + folds.values[:-1]) / 2
assert np.allclose(net(folds.at(middle)), halfway, atol=1e-9)  # straight between the knots

if __name__ == "__main__":
    figure.savefig("line_through_a_deep_network.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
