"""A picture in eight colours: each pixel takes the nearest one of a palette."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

# Discs that fade from the middle, each in a colour of its own.
rng = np.random.default_rng(11)
y, x = np.mgrid[0:1:240j, 0:1:320j]
scene = np.full((240, 320, 3), [0.93, 0.9, 0.82])
for _ in range(14):
    colour, place, size = rng.random(3) ** 1.5, rng.random(2), rng.uniform(0.08, 0.24)
    distance = np.hypot((x - place[0]) * 4 / 3, y - place[1]) / size
    shade = np.clip(1.4 - distance, 0, 1)[..., np.newaxis] * (distance < 1)[..., np.newaxis]
    scene = scene * (1 - shade) + colour * shade
picture = (255 * scene).astype(np.float32)


def nearest(pixels, palette):
    """Return the number of the colour that is nearest to each pixel."""
    return bcast.chain(pixels[..., np.newaxis, :], (np.subtract, palette), np.square, (np.sum, -1), (np.argmin, -1))


# The palette: eight colours of the picture. Each moves to the mean of its pixels.
colours = np.unique(picture.reshape(-1, 3), axis=0)
palette = colours[rng.choice(len(colours), 8, replace=False)]
for _ in range(20):
    labels = nearest(picture, palette)
    palette = np.array([bcast.mean(picture[labels == k], 0) for k in range(8)])
labels = nearest(picture, palette)

figure, panels = plt.subplots(1, 3, figsize=(11, 2.9), width_ratios=(4, 4, 0.5))
for axes, shown in zip(panels, (picture, palette[labels], palette[:, np.newaxis]), strict=True):
    axes.imshow(shown / 255)
    axes.axis("off")
