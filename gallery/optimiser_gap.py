"""Of sixty trained networks with two units none comes near the best, which is found and proved.

A loss curve that has gone flat says nothing about how much lower another network of the same size
could be. For small networks the least loss is a number that can be computed, with a proof that
nothing is below.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPRegressor

from pindown.learn import ExactReluRegressor

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(-1, 1, (24, 1)), axis=0)
y = np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=24)

best = ExactReluRegressor(width=2, output_bias=True, verbose=0).fit(X, y)
print(best.summary())

losses, curves = [], []
grid = np.linspace(-1, 1, 400)[:, None]
for seed in range(60):
    trained = MLPRegressor(
        hidden_layer_sizes=(2,), solver="lbfgs", alpha=0, max_iter=2000, tol=1e-9, random_state=seed
    ).fit(X, y)
    losses.append(((trained.predict(X) - y) ** 2).sum())
    curves.append(trained.predict(grid))

figure, (left, right) = plt.subplots(1, 2, width_ratios=[1.25, 1])
left.plot(grid, np.transpose(curves), c="C1", lw=0.8, alpha=0.35)
left.plot(grid, best.predict(grid), c="C0", lw=3)
left.plot(X, y, "o", c="black", ms=4)
left.set(xticks=[], yticks=[], ylim=(-2, 2))
left.set_title("60 trained networks, and the best")
right.hist(losses, np.linspace(0, max(losses), 30), color="C1", alpha=0.8, orientation="horizontal")
right.axhline(best.best_loss_, c="C0", lw=3)
right.text(
    right.get_xlim()[1],
    best.best_loss_,
    "proved: none is lower ",
    color="C0",
    weight="bold",
    va="bottom",
    ha="right",
)
right.set(xlabel="networks", ylim=0)
right.set_title("squared error")

assert best.optimal_ and np.isclose(best.best_loss_, best.lower_bound_)
assert min(losses) > 1.2 * best.best_loss_

if __name__ == "__main__":
    figure.savefig("optimiser_gap.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
