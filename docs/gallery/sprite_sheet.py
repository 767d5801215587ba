"""One sprite, repeated over a sheet. Each cell then gets its own colour and rotation."""

import colorsys

import matplotlib.pyplot as plt
import numpy as np

import bcast

ship = np.array(
    [
        [0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 1, 2, 2, 1, 0, 0],
        [0, 0, 1, 2, 2, 1, 0, 0],
        [0, 1, 1, 1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1, 1, 1, 1],
        [1, 0, 1, 1, 1, 1, 0, 1],
        [0, 0, 3, 0, 0, 3, 0, 0],
    ]
)
sprite = np.pad(ship, 1)

# New axes for the rows and columns of the sheet, before the sprite's own.
sheet = bcast.broadcast(sprite, (4, 8, *sprite.shape))
for row in range(4):
    sheet[row] = np.rot90(sheet[row], row, axes=(1, 2))

picture = np.zeros((*sheet.shape, 3))
picture[sheet == 2] = (0.75, 0.9, 1.0)
picture[sheet == 3] = (1.0, 0.6, 0.2)
for column in range(8):
    picture[:, column][sheet[:, column] == 1] = colorsys.hsv_to_rgb(column / 8, 0.6, 0.95)

figure, axes = plt.subplots(figsize=(8, 4))
axes.imshow(picture.swapaxes(1, 2).reshape(4 * 10, 8 * 10, 3), interpolation="nearest")
axes.axis("off")
