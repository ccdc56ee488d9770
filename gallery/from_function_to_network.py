"""A function with p straight pieces is one layer of p - 1 or p ReLUs, without training.

Lookup tables, tariffs and calibration curves are piecewise linear. The compiler writes them as a
network, in rational arithmetic if wished, and finds the least number of ReLUs; the way back reads
the pieces off a network.
"""

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np

from pindown.circuits import PiecewiseLinear1D, compile_1d

skyline = [0, 2, 2, 5, 1, 4, 7, 3, 3, 6, 1, 0]
corners = [Fraction(k) for k in range(len(skyline))]
f = PiecewiseLinear1D(corners, [Fraction(v) for v in skyline], left_slope=0, right_slope=0)
exact = compile_1d(f, minimize=True)
net = exact.to_network()
(W, b), (v, c) = net.layers

figure, ax = plt.subplots()
x = np.linspace(-1, 12, 800)
ramps = v[0] * np.maximum(x[:, None] @ W.T + b, 0)
for ramp in ramps.T:
    ax.plot(x, ramp, color="C1", lw=1, alpha=0.7)
ax.fill_between(x, net(x[:, None])[:, 0], color="C0", alpha=0.2, lw=0)
ax.plot(x, net(x[:, None])[:, 0], color="C0", lw=3)
ax.plot(range(len(skyline)), skyline, "o", c="C0", ms=6)
ax.text(8.4, 6.4, "their sum", color="C0", weight="bold", size=12)
ax.text(-0.9, -5, f"{net.size} ReLUs,\ntimes their weights", color="C1", weight="bold", size=12)
ax.set(xlim=(-1, 12), ylim=(-8, 8.5), xticks=[], yticks=[])
ax.spines[:].set_visible(False)
ax.axhline(0, color="black", lw=0.8)
ax.set_title(f"{f.n_pieces} pieces, {net.size} ReLUs, no training")

assert net.size in {f.n_pieces - 1, f.n_pieces}
assert all(exact([x]) == [y] for x, y in zip(corners, skyline, strict=True))  # equal as fractions
assert PiecewiseLinear1D.from_network(exact).slopes == f.simplified().slopes

if __name__ == "__main__":
    figure.savefig("from_function_to_network.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
