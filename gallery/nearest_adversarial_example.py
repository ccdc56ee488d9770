"""The nearest image of another class can be found and proved to be the nearest.

Adversarial examples from attacks are upper bounds: a better attack may come tomorrow. Here no
better one can come, since an exact search has closed the gap between the witness and the
certificate.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import pindown as pn
from pindown.guarantees import minimum_distance
from pindown.probes import attack

X, y = load_digits(return_X_y=True)
X = X / 16
model = MLPClassifier((24,), alpha=0.1, max_iter=200, random_state=0).fit(X[:1500], y[:1500])
net = pn.ReluNetwork.from_sklearn(model)
x = X[1503]

found = minimum_distance(net, x, "linf", box=(0, 1), budget=10)
common = attack(net, [x], norm="linf", box=(0, 1), method="deepfool")
before, after = net(x).argmax(), net(found.witness).argmax()
print(found)

figure, axes = plt.subplots(1, 3, figsize=(6.6, 3.1))
change = found.witness - x
images = ((x, "Greys", (0, 1)), (change, "RdBu_r", (-0.2, 0.2)), (found.witness, "Greys", (0, 1)))
titles = (f"class {before}", f"± {found.upper:.3f} at most", f"class {after}")
for ax, (image, colours, (low, high)), title in zip(axes, images, titles, strict=True):
    ax.imshow(image.reshape(8, 8), cmap=colours, vmin=low, vmax=high)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title(title, loc="center")
figure.text(0.345, 0.5, "+", size=22, ha="center", va="center")
figure.text(0.66, 0.5, "=", size=22, ha="center", va="center")
figure.supxlabel(
    f"proved: nothing nearer than {found.lower:.3f}; a common attack stops at {common.distance[0]:.3f}"
)

assert after != before and found.upper - found.lower < 1e-4 < common.distance[0] - found.lower

if __name__ == "__main__":
    figure.savefig("nearest_adversarial_example.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
