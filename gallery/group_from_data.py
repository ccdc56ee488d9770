"""From pairs of related samples alone, the group that relates them is found.

Which samples belong together is known, what relates them is not. The learner finds twelve maps that
multiply like the symmetries of a hexagon, and claims it only because held-out pairs agree and hard
negatives do not.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import SymmetryLearner, dihedral

hexagon = dihedral(6).permuting()
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6))
Y = np.array([hexagon.act(rng.integers(12), x) for x in X])  # what happened to each is not told

learner = SymmetryLearner(random_state=0).fit(X, Y)
print(learner.evidence_)

figure, axes = plt.subplots(1, 3, figsize=(6.6, 3.0))
axes[0].imshow(X[:12], cmap="RdBu", vmin=-2.5, vmax=2.5)
axes[0].set_title("samples", loc="center")
axes[1].imshow(Y[:12], cmap="RdBu", vmin=-2.5, vmax=2.5)
axes[1].set_title("related ones", loc="center")
axes[2].imshow(learner.table_, cmap="twilight")
axes[2].set_title(f"the group: {learner.group_.name}", loc="center")
for ax in axes:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
for place in (0.355, 0.665):
    figure.text(place, 0.5, "→" if place > 0.5 else "~", size=20, ha="center", va="center")
figure.supxlabel("right: which of the 12 elements follows when row is multiplied by column")

truth = np.array(sorted(hexagon.matrices.round(6).reshape(12, -1).tolist()))
found = np.array(sorted(learner.matrices_.round(6).reshape(12, -1).tolist()))
assert learner.claimed_ and learner.group_.name == "D6" and np.allclose(found, truth, atol=1e-5)

if __name__ == "__main__":
    figure.savefig("group_from_data.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
