"""The widest margin rests on three of sixty points; the others could be left out.

Each point has a multiplier, and the conditions of Karush, Kuhn and Tucker say that it is zero unless
the point lies on the margin. So removing any other point, or all of them, changes nothing. The report
checks these conditions of a fitted support vector machine, by number.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from pindown.learn.margins import svm_report

rng = np.random.default_rng(3)
X = np.r_[rng.normal((-1.6, -0.9), 0.75, (30, 2)), rng.normal((1.6, 0.9), 0.75, (30, 2))]
y = np.repeat([-1, 1], 30)
model = SVC(kernel="linear", C=1e4, tol=1e-8).fit(X, y)
report = svm_report(model, X, y)
few = report.support
again = SVC(kernel="linear", C=1e4, tol=1e-8).fit(X[few], y[few])

figure, ax = plt.subplots()
x = np.linspace(-4, 4, 200)
w, b = model.coef_[0], model.intercept_[0]
for level, style in ((-1, "--"), (0, "-"), (1, "--")):
    ax.plot(x, (level - b - w[0] * x) / w[1], style, c="0.4", lw=1.4)
for side, colour in ((-1, "C0"), (1, "C1")):
    ax.scatter(*X[y == side].T, s=28, c=colour, lw=0, label=f"class {side:+d}")
ax.scatter(*X[few].T, s=190, fc="none", ec="C5", lw=2, label="support vectors")
ax.set(xlim=(-4, 4), ylim=(-3.2, 3.2), xlabel="first input", ylabel="second input")
ax.set_title("the boundary and its margins rest on the circled points")
ax.legend(loc="lower right")

assert len(few) <= 4 and report.violation < 1e-4
assert np.allclose(again.coef_, model.coef_, atol=1e-3)

if __name__ == "__main__":
    figure.savefig("support_vectors.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
