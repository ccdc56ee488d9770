"""Published accuracies of networks with exits: what the experiments are compared with."""

from __future__ import annotations

from collections.abc import Mapping

Table = Mapping[str, tuple[float, ...]]

# Top-5 accuracy in percent on CIFAR-100 with 150, 250, 350 and all 500 images per class, by exit.
# Phuong 2021, Table 6.2 (budget mode).
BUDGET = {
    150: {
        "exit-wise": (72.4, 75.5, 77.4, 78.4, 79.2, 79.8, 80.1, 80.3, 80.3, 80.4, 80.3),
        "distillation": (78.7, 80.5, 80.9, 81.2, 81.2, 81.2, 81.1, 81.1, 81.1, 81.1, 81.1),
        "semi-supervised": (79.9, 81.1, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0, 81.0),
    },
    250: {
        "exit-wise": (80.6, 83.4, 84.9, 86.0, 86.8, 87.4, 87.6, 87.9, 88.0, 88.0, 87.9),
        "distillation": (85.6, 87.5, 88.4, 88.6, 88.8, 88.8, 88.8, 88.8, 88.8, 88.8, 88.8),
        "semi-supervised": (86.5, 88.2, 88.5, 88.7, 88.7, 88.7, 88.7, 88.7, 88.7, 88.7, 88.7),
    },
    350: {
        "exit-wise": (84.5, 87.2, 88.8, 89.6, 90.1, 90.5, 90.7, 90.8, 90.8, 90.8, 90.8),
        "distillation": (88.1, 90.1, 91.1, 91.3, 91.4, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5),
        "semi-supervised": (88.5, 90.4, 91.2, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5, 91.5),
    },
    500: {
        "exit-wise": (87.5, 89.8, 91.2, 91.8, 92.3, 92.6, 92.9, 93.0, 93.1, 93.1, 93.1),
        "distillation": (90.0, 92.0, 92.9, 93.1, 93.1, 93.1, 93.1, 93.1, 93.1, 93.1, 93.1),
    },
}
# The same on ImageNet with 100 images per class and with all. Phuong 2021, Table 6.1.
IMAGENET = {
    "100": {"exit-wise": (64.4, 67.1, 68.1, 68.2, 68.1), "distillation": (68.1, 69.2, 69.3, 69.3, 69.3)},
    "300": {"exit-wise": (79.5, 82.1, 83.0, 83.1, 83.3), "distillation": (82.3, 83.9, 84.2, 84.2, 84.2)},
    "500": {"exit-wise": (83.4, 86.3, 87.3, 87.5, 87.8), "distillation": (85.6, 87.3, 87.7, 87.7, 87.7)},
    "full": {
        "exit-wise": (87.8, 90.4, 91.5, 91.8, 92.3),
        "distillation": (88.8, 90.7, 91.3, 91.5, 91.7),
    },
}


def published_gains(table: Table, loss: str = "distillation") -> tuple[float, ...]:
    """Return what a loss gains over exit-wise training, in points by exit, to the digits printed.

    >>> published_gains(BUDGET[500])[-3:], published_gains(IMAGENET["full"])[0]
    ((0.0, 0.0, 0.0), 1.0)
    """
    return tuple(round(a - b, 1) for a, b in zip(table[loss], table["exit-wise"], strict=True))
