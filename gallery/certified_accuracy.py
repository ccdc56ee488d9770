"""Accuracy under all small changes lies between two curves, both proved.

Accuracy under an attack is only an upper end. With the lower end beside it one sees how much the
attack may have missed, and where the two touch the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.guarantees import certified_accuracy

X, y = load_digits(return_X_y=True)
X = X / 16
radii = np.linspace(0, 0.16, 9)

figure, ax = plt.subplots()
curves = {}
for alpha, colour, name in ((1e-4, "C1", "plain training"), (1.0, "C0", "with weight decay")):
    model = MLPClassifier((24,), alpha=alpha, max_iter=150, random_state=0).fit(X[:1400], y[:1400])
    net = pn.ReluNetwork.from_sklearn(model)
    curve = certified_accuracy(net, X[1400:1480], y[1400:1480], radii, box=(0, 1), verbose=0)
    ax.fill_between(radii, curve.lower, curve.upper, color=colour, alpha=0.35, lw=0)
    ax.plot(radii, curve.lower, c=colour, lw=2.5)
    ax.plot(radii, curve.upper, c=colour, lw=1.2, ls="--")
    curves[name] = curve
ax.text(0.115, 0.66, "with weight decay", color="C0", weight="bold")
ax.text(0.012, 0.22, "plain training", color="C1", weight="bold")
ax.set(xlabel="largest change of a pixel", ylabel="images that are right", ylim=(0, 1), xlim=(0, 0.16))
ax.set_title("solid: right under every change (proved); dashed: under attack", fontsize=11)
ax.grid(axis="y")

assert all((curve.lower <= curve.upper).all() for curve in curves.values())
assert (curves["with weight decay"].lower[3:6] > curves["plain training"].upper[3:6]).all()

if __name__ == "__main__":
    figure.savefig("certified_accuracy.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
