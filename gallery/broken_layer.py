"""One layer that pads with zeros breaks a network's symmetry, and the table names that layer.

Symmetric networks are made of layers that move along with the input and of pools that let it go. Each
stage is checked on its own, so the first that fails is the one to repair.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from pindown.symmetry import cyclic, validate_blueprint

n = 12


def network(last):
    """Return a network that pads in its second convolution as asked."""
    torch.manual_seed(0)
    wrap = {"padding": 1, "padding_mode": "circular"}
    return nn.Sequential(
        nn.Unflatten(1, (1, n)),
        nn.Conv1d(1, 6, 3, **wrap),
        nn.ReLU(),
        nn.Conv1d(6, 6, 3, padding=1, padding_mode=last),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
    )


X = torch.randn(30, n, generator=torch.Generator().manual_seed(1))
reports = {mode: validate_blueprint(network(mode), cyclic(n), X) for mode in ("circular", "zeros")}
figure, ax = plt.subplots(figsize=(7.4, 3.9))
names = ["one channel", "convolution", "ReLU", "convolution", "ReLU", "mean", "flat"]
for k, (mode, report) in enumerate(reports.items()):
    errors = [max(stage.error, 1e-8) for stage in report.stages]
    ax.plot(errors, range(len(errors)), "os"[k], ms=8, label=mode)
ax.axvline(reports["circular"].tolerance, color="0.6", ls="--", lw=1)
ax.text(reports["circular"].tolerance, -0.65, " rounding", color="0.4", fontsize=9)
ax.set(xscale="log", xlabel="error of the symmetry", yticks=range(len(names)), yticklabels=names)
ax.set(title="shifts, from layer to layer", ylim=(len(names) - 0.5, -1.0))
ax.legend(title="padding of the second convolution", loc="center")

assert max(s.error for s in reports["circular"].stages) < 1e-4
assert [s.behaviour == "broken" for s in reports["zeros"].stages].index(True) == 3

if __name__ == "__main__":
    figure.savefig("broken_layer.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
