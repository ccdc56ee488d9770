"""Which cue a network uses is decided by its data: conflicting textures teach it shapes.

Two networks see the same shapes. For one of them every shape has a texture of its own, for the other
textures are drawn at random. On images whose cues disagree the first answers by texture, the second
by shape; their accuracy on images like their own says nothing about that.
"""

import matplotlib.pyplot as plt
import torch

from pindown.probes import make_cue_images, shape_bias
from pindown.probes.texture_shape import SHAPES

test = make_cue_images(400, conflict=True, size=20, random_state=9)
biases = {}
for conflict in (False, True):
    train = make_cue_images(800, conflict=conflict, size=20, random_state=1)
    torch.manual_seed(0)
    X, y = torch.tensor(train.images).float() - 0.5, torch.tensor(train.shapes)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 12, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(12, 24, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(24 * 9, len(SHAPES)),
    )  # fmt: skip
    descent = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(16):
        for rows in torch.randperm(len(X)).split(64):
            descent.zero_grad()
            torch.nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
            descent.step()
    with torch.no_grad():
        biases[conflict] = shape_bias(
            lambda images, net=net: net(torch.tensor(images).float() - 0.5), test
        )

figure, axes = plt.subplots(1, 4, figsize=(9, 3.2), width_ratios=(1, 1, 1, 1.7))
for ax, image in zip(axes[:3], test.images[:3], strict=True):
    ax.imshow(image[0], cmap="gray")
    ax.set(xticks=[], yticks=[])
axes[1].set_title("cues in conflict")
names = ("a texture\nfor each shape", "textures\nat random")
axes[3].bar(names, [found.value for found in biases.values()], color=["C0", "C1"], width=0.6)
axes[3].set(ylim=(0, 1), ylabel="answers by shape", xlabel="training images")

assert biases[False].value < 0.35 and biases[True].value > 0.65

if __name__ == "__main__":
    figure.savefig("texture_and_shape.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
