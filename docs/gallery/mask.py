"""A mask chooses between a picture of three channels and a background."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

# An evening sky with a sun, and hills in front of it.
y, x = np.mgrid[0:1:240j, 0:1.5:360j]
sky = 1 - y[..., np.newaxis]
picture = sky * [0.25, 0.35, 0.7] + (1 - sky) * [1.0, 0.6, 0.35]
picture[np.hypot(x - 0.95, y - 0.5) < 0.13] = (1.0, 0.93, 0.65)
for height, colour in ((0.62, (0.45, 0.3, 0.45)), (0.75, (0.25, 0.2, 0.35))):
    picture[y > height + 0.08 * np.sin(5 * x + 20 * height)] = colour

mask = ((x - 0.75) / 0.55) ** 2 + ((y - 0.5) / 0.38) ** 2 < 1

# The mask gains the channels as a new last axis; the colour gains rows and columns before its own.
everywhere = bcast.broadcast_like(mask, picture, axes_mapping=[0, 1])
cut = bcast.broadcast_like(np.array([0.93, 0.91, 0.85]), picture)
cut[everywhere] = picture[everywhere]

figure, panels = plt.subplots(1, 3, figsize=(9, 2.35))
titles = (f"picture, {picture.shape}", f"mask, {mask.shape}", "cut out")
for axes, shown, title in zip(panels, (picture, mask, cut), titles, strict=True):
    axes.imshow(shown, cmap="gray")
    axes.set_title(title)
    axes.axis("off")
