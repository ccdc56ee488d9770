"""When two networks differ, `diff` finds an input that shows it better than 100,000 samples do.

A pruned copy looks harmless on test data and on random inputs. The witness is part of the answer:
put it into both networks and see. It bounds the largest gap from below, and a proof bounds it from
above.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPClassifier

import pindown as pn

X, y = load_iris(return_X_y=True)
X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
model = MLPClassifier((16, 16), solver="lbfgs", alpha=0.01, max_iter=300, random_state=1).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)
pruned = pn.ReluNetwork.from_layers([(np.where(abs(W) < 0.03, 0, W), b) for W, b in net.layers])

samples = np.random.default_rng(0).uniform(size=(100_000, 4))
seen = abs(net(samples) - pruned(samples)).max(axis=1)
flowers = abs(net(X) - pruned(X)).max(axis=1)
answer = pn.diff(net, pruned, box=(0, 1), tol=seen.max(), budget=5)  # is there more than samples see?
print(answer)

figure, ax = plt.subplots()
ax.hist(seen, 80, color="C0", alpha=0.55, log=True, label="100,000 random inputs")
ax.hist(flowers, 20, color="C2", log=True, label="150 flowers")
ax.axvspan(answer.gap_lower, answer.gap_upper, color="C1", alpha=0.25, lw=0)
ax.axvline(answer.gap_lower, color="C1", lw=2.5)
ax.text(answer.gap_lower * 0.99, 1.2e4, "witness", color="C1", weight="bold", ha="right")
ax.text(answer.gap_upper * 1.01, 150, "proved:\nthe largest\ngap lies here", color="C1")
ax.set(
    xlabel="largest difference of an output",
    ylabel="inputs",
    xlim=(0, 1.22 * answer.gap_upper),
    ylim=(0.7, 1e5),
)
ax.set_title("a pruned copy: what samples see, and what there is")
ax.legend(loc="upper left")

gap_at_witness = abs(net(answer.witness) - pruned(answer.witness)).max()
assert answer.verdict == "different" and gap_at_witness >= answer.gap_lower > seen.max()

if __name__ == "__main__":
    figure.savefig("witness.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
