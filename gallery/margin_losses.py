"""Hinge and logistic loss lie above the count of mistakes, so whoever makes them small makes few.

Counting mistakes is what one wants and cannot descend: the count is flat nearly everywhere. Both
losses bound it, are convex and have a slope. The hinge stops pulling at samples with a margin of one,
which is why a support vector machine rests on a few; the logistic loss never stops.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.learn.margins import HINGE, LOGISTIC, zero_one

margins = np.linspace(-2.0, 3.0, 501)
mistakes = zero_one(margins)
hinge, logistic = HINGE.value(margins), LOGISTIC.value(margins) / np.log(2)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
left.plot(margins, mistakes, color="#7F7F7F", label="a mistake")
left.plot(margins, hinge, label="hinge")
left.plot(margins, logistic, label="logistic / log 2")
left.set(xlabel="margin y f(x)", ylabel="loss")
left.set_title("both lie above the count")
left.legend(loc="upper right")
right.plot(margins, -HINGE.slope(margins), label="hinge")
right.plot(margins, -LOGISTIC.slope(margins) / np.log(2), label="logistic / log 2")
right.set(xlabel="margin y f(x)", ylabel="pull on a sample (minus the slope)")
right.set_title("only one lets go")
right.legend(loc="upper right")

assert (hinge >= mistakes).all() and (logistic >= mistakes - 1e-12).all()

if __name__ == "__main__":
    figure.savefig("margin_losses.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
