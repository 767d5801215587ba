"""The mask of a batch of sentences: no token sees later ones, nor the padding of its sentence."""

import matplotlib.pyplot as plt
import numpy as np

import bcast

lengths = np.array([12, 7, 9])  # tokens of each sentence
tokens = 12
heads = 4
shape = (len(lengths), heads, tokens, tokens)  # batch, head, query, key

present = np.arange(tokens) < lengths[:, np.newaxis]
mask = bcast.broadcast(present, shape, axes_mapping=[0, 3])  # batch and key
mask &= np.tri(tokens, dtype=bool)  # NumPy broadcasts over batch and head by itself

scores = np.random.default_rng(4).normal(0, 1, shape)
scores[~mask] = -np.inf
weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
weights /= weights.sum(axis=-1, keepdims=True)

figure, panels = plt.subplots(2, 3, figsize=(7.5, 5.2), sharex=True, sharey=True)
for i, length in enumerate(lengths):
    panels[0, i].imshow(mask[i, 0], cmap="Blues", vmin=0, vmax=1.4)
    panels[0, i].set_title(f"sentence of {length}: mask")
    panels[1, i].imshow(weights[i, 0], cmap="viridis", vmin=0, vmax=0.6)
    panels[1, i].set_title("weights of head 0")
    panels[1, i].set_xlabel("key")
for axes in panels[:, 0]:
    axes.set_ylabel("query")
