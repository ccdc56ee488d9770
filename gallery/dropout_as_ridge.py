"""Dropping inputs at random is, on average, a ridge penalty in the scale of each input.

For a linear unit the expectation over all masks is a formula: the error of the shrunk unit plus
squared weights times squared inputs. So the weights under dropout are found without dropping
anything.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.bias import dropout_least_squares
from pindown.bias.least_squares import dropout_squared_error

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4)) * [2.0, 1.0, 1.0, 0.3]
y = X @ [1.0, -1.0, 0.5, 2.0] + 0.3 * rng.normal(size=40)
keeps = np.linspace(0.1, 1.0, 19)
fits = [dropout_least_squares(X, y, keep) for keep in keeps]
weights = np.array([fit.weights for fit in fits])
w = fits[9].trained
promised = np.array([dropout_squared_error(X, y, w, keep).mean() for keep in keeps])
masks = rng.random((3000, *X.shape))
measured = np.array([np.mean((y - ((masks < keep) * X) @ w) ** 2) for keep in keeps])

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6))
for column, scale in zip(weights.T, ("2", "1", "1", "0.3"), strict=True):
    left.plot(keeps, column, label=f"input of size {scale}")
left.set(xlabel="share of inputs that are kept", ylabel="weight", ylim=(-1.2, 3.2))
left.set_title("dropout shrinks weights")
left.legend(fontsize=9)
right.plot(keeps, promised, label="formula")
right.plot(keeps, measured, "o", ms=4, label="3,000 masks")
right.set(
    xlabel="share of inputs that are kept", ylabel="squared error", title="the error under dropout"
)
right.legend()

assert np.allclose(measured, promised, rtol=0.02)
assert (abs(weights[0]) < abs(weights[-1])).all()

if __name__ == "__main__":
    figure.savefig("dropout_as_ridge.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
