"""With whole orbits as data, weights that start as an orbit stay one; with half of them they do not.

The loss over whole orbits is the same for weights that are moved along, so its gradient moves along
too. Every step then keeps what the start had. Leaving out some of the moved samples breaks it, as
drawing a few of them at random does.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pindown.symmetry import cyclic, orbit_deviation, orbit_init, orbit_loss

n, steps = 6, 300
group = cyclic(n)
rng = np.random.default_rng(0)
X, y = rng.normal(size=(12, n)), rng.normal(size=12)
whole = np.concatenate([group.act(g, X) for g in range(n)]), np.tile(y, n)
part = whole[0][:36], whole[1][:36]  # three of six shifts


def loss(W, data):
    """Return the squared error of a network whose units are rows of W, summed."""
    inputs, targets = (torch.as_tensor(each) for each in data)
    return ((torch.tanh(inputs @ W.T).sum(dim=1) - targets) ** 2).mean()


deviations = {}
for name, data in (("whole orbits", whole), ("half of each orbit", part)):
    W = torch.tensor(orbit_init(group, 1, n), requires_grad=True)
    track = []
    for _ in range(steps):
        (slope,) = torch.autograd.grad(loss(W, data), W)
        W = (W - 0.03 * slope).detach().requires_grad_()
        track.append(orbit_deviation(W.detach().numpy(), group))
    deviations[name] = np.array(track)
w = rng.normal(size=n)
square = lambda out, target: (np.ravel(out) - target) ** 2  # noqa: E731
losses = [
    [orbit_loss(lambda Z, v=v: Z @ v, square, X, y, group), np.mean((X @ v - y) ** 2)]
    for v in group.orbit(w)
]

figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6))
left.plot(np.array(losses)[:, 0], "o-", label="over whole orbits")
left.plot(np.array(losses)[:, 1], "s-", label="over the samples alone")
left.set(xlabel="weights shifted by", ylabel="loss", title="the loss of shifted weights", ylim=(0, None))
left.legend(loc="lower right")
for name, style in (("whole orbits", "-"), ("half of each orbit", "--")):
    right.plot(np.maximum(deviations[name], 1e-17), style, label=name)
right.set(xlabel="step", ylabel="distance from an orbit", yscale="log", ylim=(1e-17, 30))
right.set_title("weights during training")
right.legend(loc="center right")

assert np.ptp(np.array(losses)[:, 0]) < 1e-12 < np.ptp(np.array(losses)[:, 1])
assert deviations["whole orbits"].max() < 1e-9 and deviations["half of each orbit"][-1] > 0.01

if __name__ == "__main__":
    figure.savefig("augmented_training.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
