"""The best function of a whole function space is a sum of bumps, one at each sample.

What a function adds besides the bumps is zero at every sample: it changes no loss and costs norm. So
infinitely many choices come down to one number per sample. And no function of norm one is larger
anywhere than the root of the kernel of the point with itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn.kernels import KernelExpansion, diagonal, fit_kernel_problem, gram

rng = np.random.default_rng(1)
centres = np.sort(rng.uniform(-2.6, 2.6, 9))[:, None]
y = np.sin(1.5 * centres[:, 0]) + 0.1 * rng.normal(size=9)
K = gram("rbf", centres, gamma=1.5)
fit = fit_kernel_problem(K, y, 0.01)
x = np.linspace(-3, 3, 301)[:, None]
bumps = gram("rbf", x, centres, gamma=1.5) * np.ravel(fit.coefficients)
best = KernelExpansion("rbf", centres, np.ravel(fit.coefficients), {"gamma": 1.5})

form = {"degree": 2, "gamma": 1.0, "coef0": 1.0}
several = []
for _ in range(60):
    f = KernelExpansion("poly", rng.uniform(-3, 3, (4, 1)), rng.normal(size=4), form)
    several.append(f(x) / f.norm)
bound = np.sqrt(diagonal("poly", x, **form))

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.7))
left.plot(x, bumps, color="0.75", lw=1)
left.plot(x, bumps.sum(axis=1), label="their sum, the best function")
left.plot(centres, y, "o", color="C1", label="samples")
left.set(xlabel="x", ylabel="value", title="a bump at each sample", ylim=(-1.5, 2.1))
left.legend(loc="upper left")
right.plot(x, np.transpose(several), color="0.75", lw=0.7)
right.plot(x, bound, "C5", label="root of k(x, x)")
right.plot(x, -bound, "C5")
right.set(xlabel="x", ylabel="value", title="functions of norm one stay between")
right.legend(loc="upper center")

assert np.allclose(best(x), bumps.sum(axis=1)) and fit.gradient < 1e-6
assert (np.abs(several) <= bound + 1e-9).all()

if __name__ == "__main__":
    figure.savefig("sums_of_kernels.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
