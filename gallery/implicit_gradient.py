"""Gradient descent follows another loss: the steps of size h descend L + (h/4) |gradient of L|².

The flow of the loss itself and the steps part at first order in the step size; the flow of the
modified loss stays with them to second order. So a large step is a penalty on steep places.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pindown.bias import gradient_flow, modified_loss


def loss(w):
    """Return a loss with a valley."""
    return (w[0] * w[1] - 1.0) ** 2 / 2 + 0.05 * (w[0] ** 2).sum()


def slope(f):
    """Return the gradient of a function of tensors."""

    def gradient(w):
        at = torch.tensor(w, requires_grad=True)
        return torch.autograd.grad(f(at), at)[0].numpy()

    return gradient


step, n_steps, start = 0.05, 70, np.array([2.4, 0.2])
steps = [start]
for _ in range(n_steps):
    steps.append(steps[-1] - step * slope(loss)(steps[-1]))
steps = np.array(steps)
times = (step * np.arange(1, n_steps + 1)).tolist()
plain = gradient_flow(slope(loss), start, time=times[-1], method="ivp", record=times)
other = gradient_flow(
    slope(modified_loss(loss, step)), start, time=times[-1], method="ivp", record=times
)

far = np.linalg.norm(plain.points - steps, axis=1)
near = np.linalg.norm(other.points - steps, axis=1)

figure, (ax, gap) = plt.subplots(1, 2, figsize=(9, 3.8))
ax.plot(*plain.points.T, c="C0", label="flow of the loss")
ax.plot(*other.points.T, c="C1", label="flow of the modified loss")
ax.plot(*steps.T, "o", c="black", ms=4, label=f"gradient descent, steps of {step}")
ax.set(xlabel="first weight", ylabel="second weight")
ax.set_title("steps and flows")
ax.legend(loc="lower left", fontsize=9)
gap.plot([0, *times], far, c="C0")
gap.plot([0, *times], near, c="C1")
gap.set(xlabel="time", ylabel="distance from the steps", ylim=(0, None))
gap.set_title("the modified loss stays nearer")

assert near.max() < far.max() / 3

if __name__ == "__main__":
    figure.savefig("implicit_gradient.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
