"""With more data the proved error of a classifier falls, and a vacuous bound is called so.

The question is how often the classifier will be wrong on new examples. Each bound holds with
probability 0.95, with every constant written out (the PAC-Bayes one for the classifier with small
noise on its weights), and beside it is what fresh examples say.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import pindown as pn
from pindown.guarantees import bound_table

rng = np.random.default_rng(0)
d, sizes = 10, (100, 300, 1000, 3000, 10000, 30000)
truth = rng.normal(size=d)
truth /= np.linalg.norm(truth)


def draw(n):
    """Draw unit vectors that keep a distance from the boundary; one label in fifty is wrong."""
    X = rng.normal(size=(4 * n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[abs(X @ truth) > 0.15][:n]
    return X, ((X @ truth > 0) ^ (rng.uniform(size=n) < 0.02)).astype(int)


names = ("held-out examples", "description length", "spectral margin")
curves, errors = {name: [] for name in names}, []
for n in sizes:
    X, y = draw(n)
    keep = n - n // 10
    model = LogisticRegression(C=100, fit_intercept=False).fit(X[:keep], y[:keep])
    net = pn.ReluNetwork.from_layers([(model.coef_, np.zeros(1))])
    table = bound_table(net, X[:keep], y[:keep], X_test=X[keep:], y_test=y[keep:])
    for name in names:
        curves[name].append(next(b.formula_value for b in table.bounds if b.name == name))
    fresh, labels = draw(20_000)
    errors.append(np.mean((net(fresh)[:, 0] > 0) != labels))

figure, ax = plt.subplots()
ax.axhspan(1, 10, color="0.92", lw=0)
ax.text(sizes[-1], 1.15, "vacuous: says nothing", color="0.4", ha="right")
for name, shown, colour in zip(
    names, ("a tenth held out", "bits of the weights", "PAC-Bayes"), ("C0", "C2", "C1"), strict=True
):
    ax.plot(sizes, curves[name], "o-", c=colour)
    ax.text(sizes[-1] * 1.12, curves[name][-1], shown, color=colour, weight="bold", va="center")
ax.plot(sizes, errors, "o-", c="black", lw=1, ms=4)
ax.text(sizes[-1] * 1.12, errors[-1] * 0.93, "errors on fresh ones", va="center")
ax.set(
    xscale="log",
    yscale="log",
    xlabel="examples",
    ylabel="error, at most",
    ylim=(0.01, 2),
    xlim=(80, 4.5e5),
)
ax.set_xticks([100, 1000, 10000], labels=["100", "1,000", "10,000"])
ax.minorticks_off()
ax.set_title("proved with probability 0.95, from the data alone")

assert all((np.array(errors) <= curve).all() for curve in curves.values())
assert curves["spectral margin"][-1] < 0.3 and curves["spectral margin"][0] > 0.9

if __name__ == "__main__":
    figure.savefig("bounds_and_data.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
