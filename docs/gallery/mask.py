"""A mask of one channel, broadcast over a picture of three, chooses between the picture and a background."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

y, x = np.mgrid[0:1:240j, 0:1.5:360j]
picture = np.stack([0.5 + 0.5 * np.sin(9 * x + 3 * y), 0.5 + 0.5 * np.cos(7 * y - 2 * x), 1 - 0.6 * y], axis=-1)
mask = ((x - 0.75) / 0.55) ** 2 + ((y - 0.5) / 0.38) ** 2 < 1

# The mask gains the channels as a new last axis; the colour gains rows and columns before its own.
everywhere = bcast.broadcast_like(mask, picture, axes_mapping=[0, 1], mode="explicit")
cut = bcast.broadcast_like(np.array([0.93, 0.93, 0.9]), picture)
cut[everywhere] = picture[everywhere]

figure, panels = plt.subplots(1, 3, figsize=(9, 2.6))
titles = (f"picture, {picture.shape}", f"mask, {mask.shape}", "cut out")
for axes, shown, title in zip(panels, (picture, mask, cut), titles, strict=True):
    axes.imshow(shown, cmap="gray")
    axes.set_title(title)
    axes.axis("off")
