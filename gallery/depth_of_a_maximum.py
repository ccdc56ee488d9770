"""The maximum of n numbers is a ReLU network of depth logarithmic in n, exactly.

Compare in pairs, then the winners, and so on: a knock-out tournament. The network is built with its
numbers known beforehand: 4 ReLUs for each of the n - 1 comparisons, one layer for each round, and
padding for those who wait.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.circuits import affine_network, maximum

sizes = np.arange(2, 33)
rng = np.random.default_rng(0)
depths, relus = [], []
for n in sizes:
    numbers = [affine_network(np.eye(n)[[i]], [0.0]) for i in range(n)]  # the i-th input
    net = maximum(numbers).network
    points = rng.normal(size=(100, n))
    assert np.allclose(net(points)[:, 0], points.max(axis=1))
    depths.append(net.depth)
    relus.append(net.size)

figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.6))
left.step(sizes, depths, where="mid", c="C0")
left.set(xlabel="numbers to compare", ylim=(0, 8), yticks=range(0, 9, 2))
left.set_title("layers: one per round")
right.plot(sizes, relus, c="C1", label="with padding")
right.plot(sizes, 6 * sizes - 4, c="0.5", ls=":", label="inputs and comparisons")
right.set(xlabel="numbers to compare", ylim=0)
right.set_title("ReLUs")
right.legend(loc="upper left")
for ax in (left, right):
    ax.grid(axis="y")

assert depths == [2 + int(np.ceil(np.log2(n))) for n in sizes]

if __name__ == "__main__":
    figure.savefig("depth_of_a_maximum.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
