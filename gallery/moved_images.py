"""A library of ways to move an image: some bring it back exactly, others blur it on the way.

Quarter turns and shifts around the border only sort the pixels anew, so they form groups, and what
is undone is gone. Turns by other angles, shears and bends read between pixels; after eight turns by
45 degrees the image is whole again only nearly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from pindown.symmetry.actions import affine_images, image_rotations, image_translations, warp

image = np.pad(load_digits().images[2] / 16, 4)
turns, shifts = image_rotations(), image_translations(16, 16, 4)
angle = np.pi / 4
turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
rows = np.arange(16.0)[:, None] * np.ones(16)
wave = np.stack([np.zeros((16, 16)), 2 * np.sin(rows / 2.5)])
shown = {
    "as it is": image,
    "quarter turn": turns.act(1, image[None])[0],
    "shift": shifts.act(5, image[None])[0],
    "turn by 45°": affine_images(image[None], turn)[0],
    "shear": affine_images(image[None], [[1.0, 0.5], [0.0, 1.0]])[0],
    "bend": warp(image[None], wave)[0],
}
around = image[None]
for _ in range(8):
    around = affine_images(around, turn)
shown["eight turns by 45°"] = around[0]

figure, axes = plt.subplots(1, 7, figsize=(11, 2))
for ax, (name, each) in zip(axes, shown.items(), strict=True):
    ax.imshow(each, cmap="gray_r", vmin=0, vmax=1)
    ax.set_title(name, fontsize=10, loc="center")
    ax.set(xticks=[], yticks=[])

back = image[None]
for _ in range(4):
    back = turns.act(1, back)
assert np.array_equal(back[0], image) and np.array_equal(shifts.act(0, image[None])[0], image)
assert 0.01 < np.abs(around[0] - image).mean() < 0.3

if __name__ == "__main__":
    figure.savefig("moved_images.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
