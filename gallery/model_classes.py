"""Five classes of functions fit the same samples, and only some of them can follow the data.

A straight line, a line in random features, a sum of kernels, and networks of one and two hidden
layers. A network with a frozen first layer is a feature model, which is why the second and the
fourth are so near.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import hypothesis_classes

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-3, 3, 50))[:, None]
y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.normal(size=50)
x = np.linspace(-3, 3, 200)[:, None]
truth = np.sin(1.5 * x[:, 0])
models = hypothesis_classes(width=40, gamma=1.0, random_state=0)
errors = {}

figure, axes = plt.subplots(1, 5, figsize=(11, 2.8), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    found = model.fit(X, y).predict(x)
    errors[name] = np.mean((found - truth) ** 2)
    ax.plot(X, y, "o", ms=3, color="0.7")
    ax.plot(x, found)
    ax.set(title=name, xlabel="x", xticks=[-3, 0, 3])
    ax.text(0.5, 0.03, f"error {errors[name]:.1g}", ha="center", transform=ax.transAxes, fontsize=9)
axes[0].set(ylabel="value", ylim=(-1.9, 1.4))

assert errors["linear"] > 0.2 and max(errors[n] for n in ("features", "kernel")) < 0.05

if __name__ == "__main__":
    figure.savefig("model_classes.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
