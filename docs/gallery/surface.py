"""A surface over a grid of coordinates."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

x, y = bcast.meshgrid(np.linspace(-3, 3, 121), np.linspace(-3, 3, 121))
distance = np.hypot(x, y)
z = np.cos(3 * distance) * np.exp(-0.4 * distance) + 0.15 * x

figure, axes = plt.subplots(figsize=(7, 4.6), subplot_kw={"projection": "3d"})
axes.plot_surface(x, y, z, cmap="viridis", rstride=2, cstride=2, linewidth=0)
axes.set_xlabel("x")
axes.set_ylabel("y")
axes.set_zlabel("z")
axes.view_init(35, -55)
axes.set_box_aspect((1, 1, 0.45), zoom=1.1)
