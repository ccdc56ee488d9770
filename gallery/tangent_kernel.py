"""A wide network trains as its tangent kernel says: the curves are predicted before the first step.

While weights move little, a network is a kernel machine. The kernel of the untrained network
predicts every output at every time; narrow networks leave the prediction, and that is where
features are learned.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pindown.bias import empirical_ntk, ntk_predict, tangent_network

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 3))
y = np.sin(2 * X[:, 0]) + X[:, 1]
steps, lr = 300, 0.01


def train(width):
    """Return the outputs on the training data after each step, and the kernel's prediction of them."""
    net = tangent_network([3, width, 1], antisymmetric=True, random_state=1)
    K = empirical_ntk(net, X)
    inputs, targets, outputs = torch.tensor(X), torch.tensor(y)[:, None], []
    for _ in range(steps + 1):
        values = net(inputs)
        outputs.append(values.detach().numpy()[:, 0].copy())
        gradients = torch.autograd.grad(((values - targets) ** 2).sum() / 2, list(net.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(net.parameters(), gradients, strict=True):
                parameter.sub_(gradient, alpha=lr)
    return np.array(outputs), ntk_predict(K, y, np.arange(steps + 1), lr=lr, mode="gd").train


figure, axes = plt.subplots(1, 2, sharey=True)
errors = []
for ax, width in zip(axes, (8, 1024), strict=True):
    outputs, predicted = train(width)
    for k in range(6):
        ax.plot(outputs[:, k], c=f"C{k}", lw=2.2, alpha=0.55)
        ax.plot(predicted[:, k], c="black", lw=1.2, ls=(0, (2, 2)))
    ax.set(
        xscale="symlog",
        xlabel="steps",
        xlim=(0, steps),
        xticks=[0, 1, 10, 100],
        xticklabels=[0, 1, 10, 100],
    )
    ax.set_title(f"{width:,} hidden units")
    errors.append(np.sqrt(np.mean((outputs - predicted) ** 2) / np.mean(y**2)))
axes[0].set_ylabel("six of the outputs")
figure.supxlabel("colours: training; dashed: predicted from the start")

assert errors[1] < 0.05 < errors[0]

if __name__ == "__main__":
    figure.savefig("tangent_kernel.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
