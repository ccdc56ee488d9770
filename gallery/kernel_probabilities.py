"""Kernel logistic regression gives probabilities that mean what they say.

Of the points to which it gives a probability of 70 %, about 70 % should be positive. Fitted by
Newton's method to the optimum, in the function space of a kernel, it is checked against fresh data.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn import KernelLogisticClassifier

rng = np.random.default_rng(0)


def draw(n):
    """Draw points with labels that are coins: the nearer to the middle, the more often heads."""
    X = rng.uniform(-2, 2, (n, 2))
    truth = 1 / (1 + np.exp(4 * (np.hypot(X[:, 0], X[:, 1] - 0.3 * X[:, 0] ** 2) - 1.1)))
    return X, (rng.uniform(size=n) < truth).astype(int)


X, y = draw(1500)
model = KernelLogisticClassifier(C=2.0, gamma=0.5).fit(X, y)
print(model.convergence_)

fresh, labels = draw(20_000)
p = model.predict_proba(fresh)[:, 1]
bins = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
said = np.array([p[bins == k].mean() for k in range(10)])
seen = np.array([labels[bins == k].mean() for k in range(10)])

figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.8))
side = np.linspace(-2, 2, 90)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
shown = model.predict_proba(grid)[:, 1].reshape(90, 90)
left.contourf(side, side, shown, levels=np.linspace(0, 1, 11), cmap="RdYlBu")
left.scatter(*X.T, s=4, c=np.where(y == 1, "#16365f", "#8c2d1b"), lw=0)
left.set(xticks=[], yticks=[], aspect="equal")
left.set_title("1,500 points, the probability")
right.plot([0, 1], [0, 1], c="0.75", lw=5, alpha=0.6)
right.plot(said, seen, "o-", c="C0", ms=6)
right.set(xlabel="it said", ylabel="it was", aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
right.set_title("on 20,000 new points")

assert abs(said - seen).max() < 0.12

if __name__ == "__main__":
    figure.savefig("kernel_probabilities.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
