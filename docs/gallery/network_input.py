"""A photograph is made ready for a network, and comes back: bytes in HWC, float32 in CHW, bytes again."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

# A bay at dusk: sky, sun, hills with mist between them, water that glitters, and the grain of a sensor.
rng = np.random.default_rng(3)
y, x = np.mgrid[0:1:224j, 0:1:224j]
light = np.exp(-12 * np.hypot(x - 0.68, y - 0.42) ** 2)[..., np.newaxis]
scene = (1 - y[..., np.newaxis]) * [0.30, 0.38, 0.62] + y[..., np.newaxis] * [0.98, 0.66, 0.45] + 0.45 * light
scene[np.hypot(x - 0.68, y - 0.42) < 0.05] = (1.0, 0.95, 0.75)
for depth, height in enumerate((0.50, 0.57, 0.63)):
    ridge = height + 0.05 * np.sin((7 + 4 * depth) * x + depth) + 0.02 * np.sin((23 + 9 * depth) * x)
    mist = 0.62 - 0.2 * depth
    scene[y > ridge] = mist * scene[y > ridge] + (1 - mist) * np.array([0.16, 0.15, 0.26])
water = y > 0.72
scene[water] = 0.55 * scene[::-1][water] + 0.45 * np.array([0.22, 0.25, 0.38])
glitter = water & (rng.random(y.shape) < 0.35 * np.exp(-60 * (x - 0.68) ** 2))
scene[glitter] = (1.0, 0.88, 0.65)
picture = np.clip(255 * (scene + 0.02 * rng.standard_normal(scene.shape)), 0, 255).astype(np.uint8)

# Less the mean and divided by the deviation of each channel, channels first: one pass, no temporaries.
mean = np.array([123.675, 116.28, 103.53], np.float32)
std = np.array([58.395, 57.12, 57.375], np.float32)
steps = (np.subtract, mean), (np.divide, std)
ready = bcast.chain(picture.transpose(2, 0, 1), *steps, dtype=np.float32, axis=0)

# And back to bytes, one and a half times as far from the mean: cut, rounded and converted in the same pass.
vivid = np.empty_like(picture)
steps = (np.multiply, 1.5 * std), (np.add, mean), np.rint, (np.maximum, 0), (np.minimum, 255)
bcast.chain(ready.transpose(1, 2, 0), *steps, out=vivid, casting="unsafe")

figure, panels = plt.subplots(1, 5, figsize=(11, 2.5))
shown = (picture, *ready, vivid)
titles = f"{picture.shape}, uint8", "red, float32", "green", "blue", "more contrast, uint8"
for axes, plane, title in zip(panels, shown, titles, strict=True):
    axes.imshow(plane, **({} if plane.ndim == 3 else {"cmap": "RdBu_r", "vmin": -2.5, "vmax": 2.5}))
    axes.set_title(title)
    axes.axis("off")
