"""Pooled ReLUs confuse a signal with its negative; distributions over the orbit confuse nothing.

An orbit is its uniform distribution. Two are one orbit exactly if all projections agree in law, or
if the mean embeddings do, or if enough power sums do; a single pooled number of each template is
less than that.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import cyclic
from pindown.symmetry.signatures import (
    moment_signature,
    orbit_mmd,
    orbit_sliced_distance,
    relu_pool_signature,
    values_from_power_sums,
)

n = 8
group, rng = cyclic(n), np.random.default_rng(0)
x = rng.normal(size=n)
x -= x.mean()
templates = rng.normal(size=(12, n)) / np.sqrt(n)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that there is no bias is what is shown
    plain = relu_pool_signature(np.array([x, -x]), templates, group)
biased = relu_pool_signature(np.array([x, -x]), templates, group, biases=[0.5])
way = np.linspace(0, 1, 41)
path = [(1 - t) * x + t * np.roll(x, 3) for t in way]
far = [(orbit_mmd(x, z, group), orbit_sliced_distance(x, z, group, templates)) for z in path]
sums = moment_signature(x[None], templates[:1], group, n)[0]
found, true = values_from_power_sums(sums), np.sort(group.orbit(x) @ templates[0])

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.5))
axes[0].plot(*plain, "o", label="no bias")
axes[0].plot(*biased, "s", label="a bias")
axes[0].plot([0, plain.max()], [0, plain.max()], color="0.6", lw=1)
axes[0].set(title="pooled ReLUs", xlabel="of a signal", ylabel="of its negative")
axes[0].legend()
axes[1].plot(way, np.array(far) / np.max(far, axis=0), label=["mean embeddings", "projections"])
axes[1].set(
    title="distance of orbits", xlabel="on the way to a shifted copy", ylabel="share of the largest"
)
axes[1].legend(loc="lower center")
axes[2].plot(true, found, "o")
axes[2].plot([true[0], true[-1]], [true[0], true[-1]], color="0.6", lw=1)
axes[2].set(title="projections from moments", xlabel="true", ylabel="from eight power sums")

assert np.allclose(*plain) and not np.allclose(*biased) and np.allclose(found, true, atol=1e-6)
assert max(far[0] + far[-1]) < 1e-7 and min(map(min, far[5:-5])) > 0.01

if __name__ == "__main__":
    figure.savefig("selective_signatures.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
