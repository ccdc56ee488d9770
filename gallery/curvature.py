"""Along most directions a trained network's loss is flat; a few directions carry the curvature.

The Hessian says how the loss bends: value, slope and curvature along a direction give a parabola
that agrees with the loss near the weights. Its largest eigenvalues limit the step of gradient
descent.
"""

import matplotlib.pyplot as plt
import torch

from pindown.bias import along, hessian, top_eigenvalues

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
X = torch.randn(60, 2)
y = torch.tanh(X[:, 0] - X[:, 1])


def loss(w):
    """Return the squared error of a network with eight hidden units."""
    hidden = torch.tanh(X @ w[:16].reshape(2, 8) + w[16:24])
    return ((hidden @ w[24:] - y) ** 2).mean()


w = (0.5 * torch.randn(32)).requires_grad_()
for _ in range(1500):
    (slope,) = torch.autograd.grad(loss(w), w)
    w = (w - 0.2 * slope).detach().requires_grad_()
w = w.detach()
torch.set_default_dtype(torch.float32)
values, vectors = torch.linalg.eigh(hessian(loss, w))
top = top_eigenvalues(loss, w, 1)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6))
t = torch.linspace(-1, 1, 81, dtype=torch.float64)
for k, name in ((-1, "steepest"), (-4, "fourth"), (10, "a flat one")):
    found = along(loss, w, vectors[:, k])
    parabola = found.value + found.slope * t + found.curvature * t**2 / 2
    (line,) = left.plot(t, [loss(w + s * vectors[:, k]) for s in t], label=name)
    left.plot(t, parabola, "--", color=line.get_color(), lw=1)
left.set(xlabel="way along a direction", ylabel="loss", ylim=(-0.02, 0.8))
left.set_title("the loss, and parabolas (dashed)")
left.legend(loc="upper center")
right.plot(range(1, 33), values.flip(0), "o", ms=4)
right.set(xlabel="number", ylabel="eigenvalue", title="of the Hessian")

assert abs(float(top.values[0]) - float(values[-1])) < 1e-6
assert float(values[-1]) > 100 * float(values.abs().median())

if __name__ == "__main__":
    figure.savefig("curvature.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
