"""RMSProp, set as its theorem says, makes the gradient small within the promised number of steps.

Adaptive methods are mostly used on trust. From the smoothness of a function, the theorem computes a
step size and a horizon; the inequality behind it can be watched at every step of a run.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.optim import log_cosh, minimize, rmsprop_plan

f, start = log_cosh(4), np.full(4, 2.0)
goals = np.array([0.5, 0.3, 0.2, 0.1, 0.05])
promised, reached, traces = [], [], []
for goal in goals:
    plan = rmsprop_plan(f.constants, f.value(start), epsilon=goal, shift=1.0)
    trace = minimize(f, start, plan.rule, steps=3000, stop_below=goal)
    assert plan.broken_steps(trace) == ()  # the proof's inequality, at every step
    promised.append(plan.horizon)
    reached.append(trace.first_below(goal))
    traces.append(trace)

figure, ax = plt.subplots()
for goal, bound, hit, colour in zip(
    goals, promised, reached, ("C0", "C1", "C2", "C3", "C4"), strict=True
):
    ax.plot([hit, bound], [goal, goal], c=colour, lw=1.5, ls=":")
    ax.plot(hit, goal, "o", c=colour, ms=9)
    ax.plot(bound, goal, "|", c=colour, ms=18, mew=3)
    ax.text(hit * 0.75, goal, f"{goal:g}", va="center", ha="right", color=colour, weight="bold")
ax.text(reached[0], 0.68, "reached", ha="center")
ax.text(promised[0], 0.68, "promised at the latest", ha="center")
ax.set(xscale="log", yscale="log", xlabel="steps", ylim=(0.035, 0.95), xlim=(5, 1e6), yticks=[])
ax.minorticks_off()
ax.set_title("steps until the gradient's length is below 0.5, ..., 0.05")

assert all(hit <= bound for hit, bound in zip(reached, promised, strict=True))

if __name__ == "__main__":
    figure.savefig("promised_steps.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
