"""A gray picture becomes RGB, and each channel gets a brightness of its own."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

y, x = np.mgrid[-1:1:240j, -1.5:1.5:360j]
gray = (127 + 127 * np.sin(14 * np.hypot(x, y)) * np.exp(-np.hypot(x, y))).astype(np.uint8)

rgb = bcast.broadcast(gray, (*gray.shape, 3), axes_mapping=[0, 1])
tinted = rgb.copy()
tinted[..., 0] //= 3  # the channels are separate memory, and each may change alone
tinted[..., 1] = tinted[..., 1] // 4 * 3

figure, panels = plt.subplots(1, 3, figsize=(9, 2.35))
for axes, picture, title in zip(
    panels,
    (gray, rgb, tinted),
    (f"gray, {gray.shape}", f"rgb, {rgb.shape}", "red and green dimmed"),
    strict=True,
):
    axes.imshow(picture, cmap="gray")
    axes.set_title(title)
    axes.axis("off")
