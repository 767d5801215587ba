"""Points fall into clusters: k-means, without an array of all distances."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

rng = np.random.default_rng(5)
middles = np.array([[-3.0, 0.5], [0.0, 2.6], [3.0, 1.0], [0.6, -1.6]])
points = (middles[:, np.newaxis] + rng.standard_normal((4, 500, 2)) * [0.9, 0.7]).reshape(-1, 2)


def nearest(places, centres):
    """Return the number of the centre that is nearest to each place."""
    return bcast.chain(places[:, np.newaxis], (np.subtract, centres), np.square, (np.sum, -1), (np.argmin, -1))


# Each centre moves to the mean of the points that are nearest to it, until none moves.
centres = points[rng.choice(len(points), 4, replace=False)]
path = [centres]
while len(path) < 3 or np.any(path[-1] != path[-2]):
    labels = nearest(points, centres)
    centres = np.array([bcast.mean(points[labels == k], 0) for k in range(4)])
    path.append(centres)

# The cells of the plane: the nearest centre of each pixel.
y, x = np.mgrid[-5:5:400j, -6.5:6.5:520j]
cells = nearest(bcast.stack([x.ravel(), y.ravel()], -1), centres).reshape(x.shape)

figure, axes = plt.subplots(figsize=(8, 5))
axes.imshow(cells, extent=(-6.5, 6.5, -5, 5), origin="lower", cmap="Pastel2", vmin=0, vmax=7, aspect="auto")
axes.scatter(*points.T, s=4, c=labels, cmap="Dark2", vmin=0, vmax=7)
for steps in np.swapaxes(path, 0, 1):
    axes.plot(*steps.T, color="black", linewidth=1)
axes.plot(*centres.T, "o", color="white", markeredgecolor="black", markersize=9)
axes.set(xlim=(-6.5, 6.5), ylim=(-5, 5))
axes.axis("off")
