"""Two files with entirely different weights can be one function, and `diff` proves it.

Hidden units may be reordered, and scaled up where the next layer scales down; exports, converters
and re-trained copies do both. No weight is where it was, no check of weights can pass, and
comparing outputs on samples proves nothing about all other inputs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.equivalence import apply, random_symmetry

X, y = load_digits(return_X_y=True)
model = MLPClassifier((32, 32), max_iter=40, random_state=0).fit(X / 16, y)
net = pn.ReluNetwork.from_sklearn(model)
copy = apply(random_symmetry(net, seed=0), net)

answer = pn.diff(net, copy, box=(0, 1))
print(answer)

figure, axes = plt.subplots(1, 3, figsize=(6.6, 3.2), width_ratios=[1, 1, 1.15])
for ax, weights, name in zip(
    axes, (net.layers[1][0], copy.layers[1][0]), ("one file", "another"), strict=False
):
    ax.imshow(weights, cmap="RdBu", vmin=-1, vmax=1)
    ax.set_title(f"{name}: weights")
    ax.axis("off")
axes[2].plot(net(X / 16).ravel(), copy(X / 16).ravel(), ".", ms=2, alpha=0.3)
axes[2].set(xticks=[], yticks=[], xlabel="outputs of one", ylabel="of the other", aspect="equal")
axes[2].set_title("the same function")
figure.supxlabel(
    f"proved on all of [0, 1]$^{{64}}$: outputs differ by at most {answer.gap_upper:.0e}", weight="bold"
)

assert answer.verdict == "same" and not np.allclose(net.layers[1][0], copy.layers[1][0])

if __name__ == "__main__":
    figure.savefig("same_function.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
