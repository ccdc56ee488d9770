"""A signature of one image stays the same under a change of light, and tells images apart.

Light multiplies pixels, so in logarithms it shifts an image along a fixed field, and averages over
such an orbit do not depend on where on it one starts. As in simple and complex cells, the orbits of
stored templates are enough: the light of a new image is never estimated.
"""

import matplotlib.pyplot as plt
import numpy as np

from pindown.symmetry.signatures import illuminate, illumination_protocol

rng = np.random.default_rng(0)
p = np.linspace(-1, 1, 12)
centres, widths = rng.uniform(-0.8, 0.8, (40, 3, 2)), rng.uniform(0.2, 0.5, (40, 3, 1, 1))
squares = (p[:, None] - centres[..., :1, None]) ** 2 + (p[None, :] - centres[..., 1:, None]) ** 2
images = 0.3 + np.exp(-squares / (2 * widths**2)).sum(axis=1)
patches = images.reshape(40, -1)
patches = patches / patches.mean(axis=1, keepdims=True)
field = ((p[:, None] + 0.5 * p[None, :]) / 1.5).ravel()
report = illumination_protocol(
    patches[:20],
    patches[20:],
    field,
    window=np.linspace(-20, 20, 401),
    lights=(-0.5, 0.0, 0.5),
    random_state=0,
)
lit = illuminate(patches[:3], field, [-0.8, 0.0, 0.8])

figure, axes = plt.subplots(1, 4, figsize=(9.5, 3), width_ratios=(1, 1, 1, 1.6))
for ax, image, light in zip(axes[:3], lit[0], ("-0.8", "0", "0.8"), strict=True):
    ax.imshow(image.reshape(12, 12), cmap="gray", vmin=0, vmax=lit[0].max())
    ax.set(title=f"light {light}", xticks=[], yticks=[])
names = ("the field\nof the light", "another\nfield")
axes[3].bar(names, [report.ratio, report.control], color=["C0", "C6"], width=0.6)
axes[3].set(yscale="log", ylim=(1e-16, 1e4), xlabel="templates move along", title="other light")
axes[3].set(ylabel="distance / that between images")

assert report.ratio < 1e-6 and report.control > 1

if __name__ == "__main__":
    figure.savefig("illumination.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
