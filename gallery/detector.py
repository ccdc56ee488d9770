"""Learned from members only, a detector says whether a point belongs, and how good it is.

Most detectors give one number. `LocalMaximaDetector` has two: membership, which draws a line around
the data, and a quality that compares points with each other, so that of a point and its damaged
copy the original wins.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn import LocalMaximaDetector

rng = np.random.default_rng(0)


def draw(n):
    """Draw members: a crescent."""
    angle = rng.uniform(0.2, np.pi + 1.2, n)
    return np.c_[np.cos(angle), np.sin(angle)] * (1 + 0.07 * rng.normal(size=(n, 1)))


model = LocalMaximaDetector(n_estimators=2, random_state=0).fit(draw(400))
fresh = draw(300)
damage = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5])
direction = rng.normal(size=fresh.shape)
quality = np.array([model.quality(fresh + amount * direction) for amount in damage])

figure, (left, right) = plt.subplots(1, 2, width_ratios=[1.25, 1], figsize=(6.6, 3.9))
side = np.linspace(-1.6, 1.6, 70)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
member = model.score_samples(grid).reshape(70, 70)
left.contourf(side, side, member, levels=np.linspace(-8, 4, 13), cmap="Blues", extend="both", alpha=0.8)
left.contour(side, side, member, levels=[model.offset_], colors="C1", linewidths=2)
left.scatter(*fresh.T, s=4, c="black")
left.set(aspect="equal", xticks=[], yticks=[])
left.set_title("new members, and the line")
low, middle, high = np.quantile(quality, [0.25, 0.5, 0.75], axis=1)
right.fill_between(damage, low, high, color="C0", alpha=0.25, lw=0)
right.plot(damage, middle, "o-", c="C0")
right.set(xlabel="damage", xlim=(0, 0.5))
right.set_title("quality")

assert (model.predict(fresh) == 1).mean() > 0.8 and (model.predict([[0, 0], [1, -1]]) == -1).all()
assert (np.diff(middle) < 0).all()

if __name__ == "__main__":
    figure.savefig("detector.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
