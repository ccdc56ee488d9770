"""The test error of least squares peaks where features are as many as samples, and falls again.

The textbook curve ends where a model can just fit its data. Beyond that point gradient descent from
zero finds the fit of least norm, and more features make it better. For Gaussian features the whole
curve is a formula.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import gaussian_risk

rng = np.random.default_rng(0)
n, D, noise = 40, 400, 0.3
truth = np.full(D, 1 / np.sqrt(D))
used = np.unique(np.geomspace(2, D, 60).astype(int))
predicted = np.array([gaussian_risk(n, truth, int(k), noise) for k in used])

measured = np.zeros((50, len(used)))
for repeat in range(50):
    X, fresh = rng.normal(size=(n, D)), rng.normal(size=(200, D))
    y = X @ truth + noise * rng.normal(size=n)
    for column, k in enumerate(used):
        w = np.linalg.lstsq(X[:, :k], y, rcond=None)[0]  # of all that fit, the one of least norm
        measured[repeat, column] = np.mean((fresh[:, :k] @ w - fresh @ truth) ** 2) + noise**2
mean = measured.mean(axis=0)

figure, ax = plt.subplots()
ax.axvline(n, color="0.8", lw=1)
ax.plot(used, predicted, c="C0", lw=2.5, label="formula")
ax.plot(used, mean, "o", c="C1", ms=4.5, label="least squares, mean of 50 runs")
ax.text(n * 1.15, 20, "as many features\nas samples", color="0.4")
ax.set(xscale="log", yscale="log", xlabel="features", ylabel="squared error on new data", ylim=(0.7, 60))
ax.set_xticks(
    [2, 5, 10, 20, 40, 100, 200, 400], labels=["2", "5", "10", "20", "40", "100", "200", "400"]
)
ax.set_yticks([1, 10], labels=["1", "10"])
ax.minorticks_off()
ax.set_title("twice down: few features are good, and very many")
ax.legend(loc="upper left")

away = abs(np.log(used / n)) > 0.3
assert np.allclose(mean[away], predicted[away], rtol=0.15)
assert mean[-1] < mean[0] < mean[abs(used - n).argmin()] / 10

if __name__ == "__main__":
    figure.savefig("double_descent.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
