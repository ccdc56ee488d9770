"""Taught by logits, a linear student is perfect after as many examples as there are inputs.

A class says on which side an example lies, a logit also how far. Every logit is one equation for
the teacher's weights, and with each one the student comes nearer, never farther: whoever may read
as many logits as there are inputs has the model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from pindown.learn import LinearDistiller

rng = np.random.default_rng(0)
d, sizes = 50, np.arange(2, 81, 3)
soft, hard = np.zeros((5, len(sizes))), np.zeros((5, len(sizes)))


def angle(u, v):
    """Return the angle of two vectors in degrees."""
    return np.degrees(np.arccos(np.clip(u @ v / np.linalg.norm(u) / np.linalg.norm(v), -1, 1)))


for repeat in range(5):
    w = rng.normal(size=d)
    X = rng.normal(size=(100, d))
    for column, n in enumerate(sizes):
        soft[repeat, column] = angle(LinearDistiller().fit(X[:n], X[:n] @ w).coef_.ravel(), w)
        student = LogisticRegression(C=100, fit_intercept=False).fit(
            np.r_[X[:n], -X[:n]], np.r_[X[:n] @ w, -X[:n] @ w] > 0
        )
        hard[repeat, column] = angle(student.coef_[0], w)

figure, ax = plt.subplots()
ax.plot(sizes, hard.T, c="C1", lw=0.8, alpha=0.35)
ax.plot(sizes, hard.mean(axis=0), c="C1", lw=3)
ax.plot(sizes, soft.T, c="C0", lw=0.8, alpha=0.35)
ax.plot(sizes, soft.mean(axis=0), c="C0", lw=3)
ax.axvline(d, c="0.7", lw=1)
ax.text(d + 1, 78, f"{d} inputs", color="0.4")
ax.text(81, hard.mean(axis=0)[-1], "taught by\nclasses", color="C1", weight="bold", va="center")
ax.text(81, 2, "by logits", color="C0", weight="bold", va="center")
ax.set(xlabel="examples", ylabel="degrees between student and teacher", ylim=(0, 90), xlim=(0, 80))
ax.set_title("learning from a teacher")

assert (np.diff(soft, axis=1) < 1e-3).all()  # never turns away
assert soft[:, sizes >= d].max() < 1e-3 and hard[:, -1].min() > 10

if __name__ == "__main__":
    figure.savefig("distillation.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
