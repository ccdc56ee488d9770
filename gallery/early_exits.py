"""A network with early exits does half of the work, and what leaves early are the easy inputs.

Each exit is a small classifier on the way. Rows that are sure leave, and what comes after is not
computed for them. Thresholds for a budget are chosen on held-out rows, before new data are seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pindown.learn import MultiExitClassifier

X, y = load_digits(return_X_y=True)
train, test = slice(0, 900), slice(900, None)
model = MultiExitClassifier(max_epochs=10, random_state=0).fit(X[train], y[train])

budgets = np.array([0.4, 0.5, 0.6, 0.7, 0.8, 1.0])
accuracy = np.array([np.mean(model.predict(X[test], budget=b) == y[test]) for b in budgets])
left_at = model.early_answers(X[test], 0.5).exits
numbers, counts = np.unique(left_at, return_counts=True)
first, last = numbers[counts >= 8][[0, -1]]

figure = plt.figure(figsize=(6.6, 3.9))
grid = figure.add_gridspec(5, 6, width_ratios=[5, 0.5, 1, 1, 1, 1], height_ratios=[1, 1, 0.3, 1, 1])
ax = figure.add_subplot(grid[:, 0])
ax.plot(budgets, accuracy, "o-", c="C0")
ax.set(xlabel="share of the operations", ylabel="right", ylim=(0.8, 1), xlim=(0.3, 1.02))
ax.set_title("less work, as often right")
ax.grid(axis="y")
rng = np.random.default_rng(1)
for exit_number, rows, colour in ((first, (0, 1), "C2"), (last, (3, 4), "C1")):
    images = rng.choice(np.flatnonzero(left_at == exit_number), 8, replace=False)
    for place, image in enumerate(images):
        small = figure.add_subplot(grid[rows[place // 4], 2 + place % 4])
        small.imshow(X[test][image].reshape(8, 8), cmap="Greys")
        small.set(xticks=[], yticks=[])
        for spine in small.spines.values():
            spine.set(visible=True, color=colour, linewidth=2)
        if place == 0:
            name = "left first" if exit_number == first else "stayed longest"
            small.text(-0.5, -1.2, name, color=colour, weight="bold", size=12).set_in_layout(False)

assert accuracy[1] > accuracy[-1] - 0.02  # half of the work
right = model.predict(X[test]) == y[test]
assert first < last and right[left_at == first].mean() > right[left_at == last].mean()

if __name__ == "__main__":
    figure.savefig("early_exits.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
