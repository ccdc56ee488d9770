"""A ReLU gate is learned from labels that an adversary has shifted, as near as promised.

Noise that averages out is easy. Here every label is moved by as much as the adversary likes, up to
a known size, always in the worst direction; the update ignores samples that could lie, and the
distance to the true weights stays bounded.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn import ModifiedSGDRegressor

rng = np.random.default_rng(0)
w = np.array([1.0, -2.0, 0.5])
X = rng.normal(size=(4000, 3))
clean = np.maximum(X @ w, 0)

figure, (left, right) = plt.subplots(1, 2, width_ratios=[1, 1.2])
sizes, errors, bounds = np.array([0, 0.05, 0.1, 0.2, 0.3, 0.4]), [], []
for theta in sizes:
    y = clean + theta * np.sign(X[:, 0])  # as bad as allowed, and never averaging out
    model = ModifiedSGDRegressor(noise_bound=theta, eps=0.02, random_state=0, verbose=0).fit(X, y)
    errors.append(np.linalg.norm(model.coef_ - w))
    bounds.append(model.error_bound_)
left.plot(X[:300] @ w, y[:300], ".", c="C1", ms=5)
grid = np.linspace(-6, 6, 100)
left.plot(grid, np.maximum(grid, 0), c="black")
left.set(xlabel="true weights · input", ylabel="label", xlim=(-6, 6))
left.set_title("labels, all shifted")
right.fill_between(sizes, bounds, 10, color="0.92", lw=0)
right.plot(sizes, bounds, c="black", label="promised")
right.plot(sizes, errors, "o-", c="C0", label="measured")
right.set(xlabel="size of the shift", ylim=(0, 1.1 * max(bounds)), xlim=(0, 0.4))
right.set_title("distance to the true weights")
right.legend(loc="upper left")

assert (np.array(errors) <= bounds).all()

if __name__ == "__main__":
    figure.savefig("gate_from_bad_labels.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
