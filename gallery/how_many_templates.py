"""Signatures need more templates only with the logarithm of how many things are to be told apart.

With as many random templates as the theorem asks for, all distances of signatures are within the
error of what infinitely many would give. Ten times as many orbits cost a few hundred templates more;
half the error costs four times as many.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import cyclic
from pindown.symmetry.signatures import simulate_templates, templates_needed

orbits = np.unique(np.geomspace(2, 1e6, 30).astype(int))
eps = np.array([0.4, 0.3, 0.2, 0.15, 0.1])
X = np.random.default_rng(0).normal(size=(8, 10))
runs = [simulate_templates(X, cyclic(10), eps=float(e), repeats=20, limit_templates=4000) for e in eps]

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6))
for e in (0.4, 0.2, 0.1):
    left.loglog(orbits, [templates_needed(int(q), e, 0.1) for q in orbits], label=f"error {e:g}")
left.set(xlabel="orbits to tell apart", ylabel="templates", title="templates that are enough")
left.legend()
right.plot(eps, eps, color="0.6", lw=4, alpha=0.5, label="promised")
right.plot(eps, [run.largest for run in runs], "o", label="largest of 20 draws")
right.set(xlabel="error that was asked for", ylabel="error", title="what was measured")
right.legend()

assert all(run.failures == 0 for run in runs)
assert templates_needed(10**6, 0.1, 0.1) < 4 * templates_needed(10, 0.1, 0.1)

if __name__ == "__main__":
    figure.savefig("how_many_templates.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
