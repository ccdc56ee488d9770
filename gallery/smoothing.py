"""Averaging a trained model over a symmetry takes its variance along orbits off the squared error.

If the truth is invariant, what a model adds along an orbit is error and nothing else; the average is
the nearest invariant function. No training is needed, and the gain can be counted before.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPRegressor

from pindown.symmetry import cyclic, orbit_variance, smoothed

n = 5
group = cyclic(n)
rng = np.random.default_rng(0)


def truth(X):
    """Return what no shift of the inputs changes: products of neighbours."""
    return (X * np.roll(X, 1, axis=1)).sum(axis=1)


test = rng.normal(size=(400, n))
orbits = np.concatenate([group.act(g, test) for g in range(n)])
sizes, errors, gains = [50, 100, 200, 400, 800], [], []
for m in sizes:
    X = rng.normal(size=(m, n))
    model = MLPRegressor(
        hidden_layer_sizes=(30,), max_iter=300, random_state=0, solver="lbfgs", alpha=0.1
    ).fit(X, truth(X))
    mean = smoothed(model.predict, group)
    before = np.mean((model.predict(orbits) - truth(orbits)) ** 2)
    after = np.mean((mean(test) - truth(test)) ** 2)
    errors.append((before, after))
    gains.append((before - after, orbit_variance(model.predict, group, test).mean()))

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6))
left.loglog(sizes, np.array(errors)[:, 0], "o-", label="model")
left.loglog(sizes, np.array(errors)[:, 1], "s-", label="its average over shifts")
left.set(xlabel="samples", ylabel="squared error", title="the error before and after")
left.set_xticks(sizes, labels=map(str, sizes))
left.minorticks_off()
left.legend()
gain, variance = np.transpose(gains)
right.plot([0, gain.max()], [0, gain.max()], color="0.6", lw=4, alpha=0.5)
right.plot(variance, gain, "o")
right.set(xlabel="variance along orbits", ylabel="error that is gone", title="the gain is known before")

assert np.allclose(gain, variance, rtol=1e-6) and (np.array(errors)[:, 1] < np.array(errors)[:, 0]).all()

if __name__ == "__main__":
    figure.savefig("smoothing.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
