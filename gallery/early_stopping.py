"""Stopping gradient descent early is ridge regression, within a factor of two in every direction.

Both hold back the weights that the data determine poorly. The penalty that corresponds to t steps
of size s is 1/(s t), and that rule needs no tuning: the bound holds for every data set.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from pindown.bias import stopping_as_ridge

X, y = load_diabetes(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = (y - y.mean()) / y.std()
step = 0.1 / np.linalg.norm(X, 2) ** 2
times = np.unique(np.geomspace(1, 1e5, 60).astype(int))
runs = [stopping_as_ridge(X, y, step=step, n_steps=int(t), reduction="half_sum") for t in times]

descent = np.array([run.stopped for run in runs])
ridge = np.array([run.ridge for run in runs])

figure, ax = plt.subplots()
for k in range(10):
    ax.plot(times, descent[:, k], c=f"C{k % 6}", lw=2.2, label="descent, stopped" if k == 0 else None)
    ax.plot(
        times,
        ridge[:, k],
        c=f"C{k % 6}",
        ls=(0, (1, 1.4)),
        lw=1.8,
        label="ridge regression" if k == 0 else None,
    )
ax.set(xscale="log", xlabel="steps t, and penalty 1/(step size × t)", ylabel="weights")
ax.set_title("ten weights: descent until t, and ridge regression")
ax.legend(loc="upper left")
ax.grid(axis="y")

assert all(1 <= run.ratio <= 2 for run in runs)
assert max(run.distance for run in runs) < 0.3

if __name__ == "__main__":
    figure.savefig("early_stopping.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
