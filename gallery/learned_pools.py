"""Cells that win while one thing moves belong together; linking them finds the orbits.

Plasticity rules know no group, but commute with it: from moved weights they learn the moved result.
So units become orbits of each other, and what wins in one sequence of a moving stimulus says which.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import cyclic
from pindown.symmetry.plasticity import learn, learn_pools, oja_rule

n = 8
group, rng = cyclic(n), np.random.default_rng(0)
templates = rng.normal(size=(3, n))
order = rng.permutation(3 * n)
bank = np.concatenate([group.orbit(w) for w in templates])[order]
owner = np.repeat(np.arange(3), n)[order]
sequences = [group.orbit(w + 0.15 * rng.normal(size=n)) for w in np.tile(templates, (4, 1))]
pools = learn_pools(bank, sequences).pools
together = np.zeros((3 * n, 3 * n))
for pool in pools:
    together[np.ix_(pool, pool)] = 1
X = np.concatenate([group.orbit(x) for x in rng.normal(size=(3, n))])
W = rng.normal(size=(1, n)) / 3
steps = (0, 40, 80, 160)
ways = [
    [learn(oja_rule, w, X, step=0.002, steps=s)[0] for s in steps] for w in (W, np.roll(W, 3, axis=1))
]

figure, axes = plt.subplots(1, 3, figsize=(10.2, 3.5), width_ratios=(1.5, 1, 1))
for s, one, other in zip(steps, *ways, strict=True):
    (line,) = axes[0].plot(one, label=f"step {s}")
    axes[0].plot(np.roll(other, -3), "o", ms=5, mfc="none", color=line.get_color())
axes[0].set(xlabel="input", ylabel="weight", title="learned from W, and from W moved (dots)")
axes[0].set_ylim(None, 1.9 * np.max(ways))
axes[0].legend(ncols=2, fontsize=9, loc="upper left")
sort = np.argsort(owner, kind="stable")
for ax, matrix, name in (
    (axes[1], together, "as they came"),
    (axes[2], together[np.ix_(sort, sort)], "sorted"),
):
    ax.imshow(matrix, cmap="Blues")
    ax.set(title=f"cells pooled, {name}", xlabel="cell", ylabel="cell")

assert {frozenset(owner[list(pool)]) for pool in pools} == {frozenset([k]) for k in range(3)}
assert all(np.allclose(np.roll(one, 3), other) for one, other in zip(*ways, strict=True))

if __name__ == "__main__":
    figure.savefig("learned_pools.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
