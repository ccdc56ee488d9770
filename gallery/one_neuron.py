"""A ReLU that is trained goes at most twice as far as it has to, and mostly hardly farther.

Gradient flow on one neuron with a monotone activation ends without loss, at weights whose distance
from the start is at most two times the least. The factor cannot be left out, but is rarely needed.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import frequency_weight, single_neuron_flow

rng = np.random.default_rng(0)
least, travelled = [], []
while len(least) < 40:
    X, start, goal = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=2)
    found = single_neuron_flow(X, np.maximum(X @ goal, 0), start, time=40, record=3)
    if found.converged and found.least > 0:  # a neuron that is dead for a sample may stay so
        least.append(found.least)
        travelled.append(found.travelled)
least, travelled = np.array(least), np.array(travelled)
waves = np.linspace(0.05, 30, 500)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.7))
far = np.array([0, 1.1 * least.max()])
left.fill_between(far, far, 2 * far, color="0.9")
left.plot(far, 2 * far, color="C5", label="twice the least, the bound")
left.plot(far, far, color="0.5", label="the least way")
left.plot(least, travelled, "o", ms=4, label="40 neurons")
left.set(xlabel="least distance to weights without loss", ylabel="distance travelled")
left.set_title("how far a neuron goes")
left.legend(fontsize=9)
for width in (0.25, 0.5):
    right.semilogy(waves, frequency_weight(waves, width, 8), label=f"width {width:g}")
right.set(
    xlabel="frequency",
    ylabel="price against a ReLU",
    title="what saturating units charge",
    ylim=(1e-6, 1e3),
)
right.legend(loc="lower right")

assert (travelled <= 2 * least * (1 + 1e-6)).all() and (travelled >= least * (1 - 1e-3)).all()
assert np.isclose(frequency_weight(1e-6, 0.5, 8), 16.0)

if __name__ == "__main__":
    figure.savefig("one_neuron.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
