"""An audit tells what a network is, and how each number is known: proved, probable or estimated.

Reports about models mix measurements with guarantees. In an audit each finding carries its kind and
what it rests on. Here one of the proved ones is put to the test: random changes within the
certified radius move no class.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPClassifier

import pindown as pn

X, y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
model = MLPClassifier((16, 16), max_iter=400, random_state=0).fit(X[::2], y[::2])
net = pn.ReluNetwork.from_sklearn(model)

asked = ["ARC-01", "ACC-01", "BND-01", "ROB-01", "LIP-01", "UNIT-01", "GEO-02", "GEO-04"]
report = pn.audit(net, X[1::2], y[1::2], only=asked)

figure, ax = plt.subplots(figsize=(6.6, 5.2))
colours = {"exact": "C0", "probability": "C2", "estimate": "C4", "heuristic": "C5"}
for row, code in enumerate(asked):
    finding = report[code]
    kind = finding.number.kind
    ax.text(0, -row, kind, color="white", weight="bold", size=8.5, ha="center", va="center",
            bbox={"boxstyle": "round,pad=0.35", "fc": colours[kind], "ec": "none"})  # fmt: skip
    ax.text(0.7, -row + 0.2, finding.title, weight="bold", va="center")
    ax.text(
        0.7, -row - 0.22, textwrap.shorten(finding.verdict, 82, placeholder=" ..."), va="center", size=9
    )
ax.set(xlim=(-0.5, 7), ylim=(-len(asked) + 0.4, 0.5))
ax.axis("off")
ax.set_title("what is known about a network, and how")

radius = report["ROB-01"].number.value
rng = np.random.default_rng(0)
changed = X[1::2] + radius * rng.choice([-1, 1], (500, 75, 4))
kept = (net(changed.reshape(-1, 4)).argmax(axis=1).reshape(500, 75) == y[1::2]).all(axis=0)
assert all(report[code].number.kind in colours for code in asked) and kept.mean() >= 0.5

if __name__ == "__main__":
    figure.savefig("audit.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
