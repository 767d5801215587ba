"""Nearest-neighbour upsampling: each pixel is repeated along two axes in one pass."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

y, x = np.mgrid[-1.2:1.2:24j, -1.2:1.2:24j]
small = np.stack([np.exp(-6 * ((x - a) ** 2 + (y - b) ** 2)) for a, b in ((-0.4, 0.3), (0.4, 0.3), (0, -0.4))], axis=-1)

large = bcast.repeat(small, (8, 8), axis=(0, 1))

figure, panels = plt.subplots(1, 2, figsize=(8, 3.8))
for axes, picture in zip(panels, (small, large), strict=True):
    axes.imshow(picture, interpolation="nearest", extent=(0, picture.shape[1], picture.shape[0], 0))
    axes.set_title(f"{picture.shape}")
    axes.set_xlim(0, large.shape[1])  # both at the same scale
    axes.set_ylim(large.shape[0], 0)
    axes.spines[["top", "right"]].set_visible(False)
