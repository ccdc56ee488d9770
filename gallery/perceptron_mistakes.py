"""A perceptron makes at most (R/margin)² mistakes, in any order and any dimension.

The bound is a worst case over all orders, and it does not mention the dimension or the number of
points. What the mistakes prove about every other separator comes with it: none has a larger margin
than the upper end.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn import MarginPerceptron

rng = np.random.default_rng(0)
rows = []
for margin in np.geomspace(0.02, 0.5, 14):
    for d in (5, 20, 200):
        w = rng.normal(size=d)
        w /= np.linalg.norm(w)
        X = rng.normal(size=(500, d))
        X -= np.outer(X @ w, w)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        height = rng.uniform(margin, 2 * margin, 500) * rng.choice([-1, 1], 500)
        X = np.sqrt(1 - np.minimum(height, 0.99) ** 2)[:, None] * X + np.outer(height, w)
        model = MarginPerceptron(max_epochs=2000, fit_intercept=False, margin=0.9 * margin).fit(
            X, X @ w > 0
        )
        rows.append((margin, d, model.n_mistakes_, model.guarantee_.bound))
margins, dimensions, mistakes, bounds = np.array(rows).T

figure, ax = plt.subplots()
line = np.geomspace(0.018, 0.55, 50)
ax.plot(line, line**-2, c="black", lw=2)
ax.fill_between(line, line**-2, 1e4, color="0.9", lw=0)
ax.text(0.16, 1300, "impossible", color="0.35", size=13, weight="bold")
for d, colour in ((5, "C0"), (20, "C1"), (200, "C2")):
    ax.plot(
        margins[dimensions == d],
        np.maximum(mistakes[dimensions == d], 0.8),
        "o-",
        c=colour,
        label=f"{d} inputs",
    )
ax.set(
    xscale="log", yscale="log", xlabel="margin", ylabel="mistakes", ylim=(0.7, 1e4), xlim=(0.018, 0.55)
)
ax.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5], labels=["0.02", "0.05", "0.1", "0.2", "0.5"])
ax.minorticks_off()
ax.set_title("mistakes until all 500 points are on their side")
ax.legend(loc="lower left")

assert (mistakes <= bounds).all() and (mistakes <= 1 / margins**2).all()

if __name__ == "__main__":
    figure.savefig("perceptron_mistakes.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
