"""What rounding the weights does to a network is bounded by a proof, and each further bit halves it.

Quantised copies are usually judged by test accuracy. Here each number format gets an interval that
holds the largest difference of any output over *all* inputs of the box.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPClassifier

import pindown as pn

X, y = load_iris(return_X_y=True)
X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
model = MLPClassifier((10,), solver="lbfgs", alpha=0.01, max_iter=200, random_state=0).fit(X, y)
net = pn.ReluNetwork.from_sklearn(model)


def rounded(weights, bits):
    """Keep so many bits of the significand of each weight."""
    significand, exponent = np.frexp(weights)
    return np.ldexp(np.round(significand * 2.0**bits) / 2.0**bits, exponent)


bits = np.array([4, 5, 6, 7, 8, 9, 10, 11, 12])
answers = []
for kept in bits:
    copy = pn.ReluNetwork.from_layers([(rounded(W, kept), rounded(b, kept)) for W, b in net.layers])
    answers.append(pn.diff(net, copy, box=(0, 1), tol=1e-9, budget=0.5))
lower = np.array([answer.gap_lower for answer in answers])
upper = np.array([answer.gap_upper for answer in answers])

figure, ax = plt.subplots()
ax.vlines(bits, lower, upper, lw=9, color="C0", alpha=0.35, label="proved interval for the largest gap")
ax.plot(bits, lower, "o", c="C0", ms=6, label="reached, by a witness")
for kept, name in ((8, "bfloat16"), (11, "float16")):
    ax.annotate(
        name,
        (kept, upper[bits == kept][0]),
        (8, 8),
        textcoords="offset points",
        color="C1",
        weight="bold",
    )
ax.set(
    yscale="log", xlabel="bits of each weight's significand", ylabel="largest difference of an output"
)
ax.set_title("a copy with rounded weights: how far off, over all inputs")
ax.grid(axis="y")
ax.legend(loc="lower left")

assert (lower <= upper).all() and all(answer.verdict == "different" for answer in answers)
slope = np.polyfit(bits, np.log2(upper), 1)[0]
assert -1.3 < slope < -0.7  # one bit, half the gap

if __name__ == "__main__":
    figure.savefig("rounded_weights.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
