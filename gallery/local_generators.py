"""From tiny moves one matrix is read off, and its exponential gives the whole orbit.

Near the identity every family of transformations is linear in its parameter. Pairs of points before
and after small moves determine the matrix by least squares, also where no group is known beforehand.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry import fit_generators, local_orbit

spiral = np.array([[0.15, -1.0], [1.0, 0.15]])  # turns and grows
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
thetas = 0.02 * rng.normal(size=(40, 1))
moved = np.array([local_orbit(x, spiral[None], t[None])[0] for x, t in zip(X, thetas, strict=True)])
found = fit_generators(X, moved, thetas)
grid = np.linspace(-2, 4, 121)[:, None]
start = np.array([0.9, 0.0])
orbit, truth = local_orbit(start, found, grid), local_orbit(start, spiral[None], grid)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.9))
arrows = (moved - X) / thetas
left.quiver(*X.T, *arrows.T, color="C0", width=0.006)
left.plot(*X.T, "o", ms=3, color="0.4")
left.set(aspect="equal", xlabel="first input", ylabel="second input")
left.set_title("how 40 points move")
right.plot(*truth.T, color="0.7", lw=6, label="true orbit")
right.plot(*orbit.T, label="from the matrix that was found")
right.plot(*start, "o", color="black")
right.set(aspect="equal", xlabel="first input", ylabel="second input", ylim=(-1.5, 2.0))
right.set_title("the orbit of a point")
right.legend(loc="upper right", fontsize=9)

assert np.allclose(found[0], spiral, atol=0.02) and np.abs(orbit - truth).max() < 0.1

if __name__ == "__main__":
    figure.savefig("local_generators.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
