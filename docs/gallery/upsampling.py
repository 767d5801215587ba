"""Nearest-neighbour upsampling: each pixel is repeated along two axes in one pass."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

y, x = np.mgrid[-1.1:1.1:24j, -1.1:1.1:24j]
spots = [(-0.4, 0.3), (0.4, 0.3), (0, -0.4)]
small = np.stack([np.exp(-5 * ((x - a) ** 2 + (y - b) ** 2)) for a, b in spots], axis=-1)

large = bcast.repeat(small, (4, 4), axis=(0, 1))

# A pixel has the same size in both panels.
figure, panels = plt.subplots(1, 2, figsize=(6, 4.3), width_ratios=(1, 4))
for axes, picture in zip(panels, (small, large), strict=True):
    axes.imshow(picture, interpolation="nearest")
    axes.set_title(f"{picture.shape}", size=9)
    axes.axis("off")
