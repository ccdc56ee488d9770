"""A variational autoencoder can be told how many nats its code shall carry, and obeys.

How much a code says about the data is usually left to accident, and with a strong decoder it is
often nothing. Here it is a dial: what is set, what is reached and what a plain autoencoder does are
measured exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn import MutualAutoencoder

X = np.random.default_rng(0).normal(size=(300, 1))
targets = np.array([0.5, 1.0, 1.5])
settings = {"hidden": (), "learning_rate": 0.02, "max_iter": 300, "verbose": 0}
models = [MutualAutoencoder(information=target, **settings).fit(X) for target in targets]
plain = MutualAutoencoder(penalty=0.0, **settings).fit(X)
reached = np.array([model.information_ for model in models])

figure, (left, right) = plt.subplots(1, 2, width_ratios=[1, 1.2], figsize=(6.6, 3.9))
left.plot([0, 1.75], [0, 1.75], c="0.75", lw=5, alpha=0.6)
left.plot(targets, reached, "o", c="C0", ms=8)
left.axhline(plain.information_, c="C1", lw=2, ls="--")
left.text(1.75, 0.08, "plain autoencoder", color="C1", ha="right", weight="bold")
left.set(
    xlabel="nats asked for", ylabel="nats measured", xticks=[0, 0.5, 1, 1.5], yticks=[0, 0.5, 1, 1.5]
)
left.set_title("the dial")
for model, target in zip(models[::2], targets[::2], strict=True):
    back = model.inverse_transform(model.transform(X))
    right.plot(X, back, ".", ms=4, label=f"{target:g} nats")
right.plot([-3, 3], [-3, 3], c="0.75", lw=1)
right.set(xlabel="number", ylabel="read back from its code", xlim=(-3, 3), ylim=(-3, 3))
right.set_title("what comes back")
right.legend(loc="upper left", markerscale=3)

assert abs(reached - targets).max() < 0.1 and plain.information_ < 0.1

if __name__ == "__main__":
    figure.savefig("information_dial.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
