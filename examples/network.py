"""A two-layer network with batch normalisation, in plain NumPy: whatever broadcasts, its gradient is by `unbroadcast`.

Run it to train the network on two spirals: `python examples/network.py`.
"""

import numpy as np

from bcast import elementwise, unbroadcast

SHAPES = {"weight": (2, 32), "bias": (32,), "scale": (32,), "shift": (32,), "readout": (32, 1), "offset": ()}


def initial(rng):
    """Draw parameters; those that broadcast begin where they change nothing."""
    parameters = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    parameters["weight"] += rng.normal(0, 2, SHAPES["weight"])
    parameters["readout"] += rng.normal(0, 0.2, SHAPES["readout"])
    parameters["scale"] += 1
    return parameters


def normalised(x):
    """Return each column less its mean, in units of its standard deviation, and that."""
    mean = unbroadcast(x, x.shape[1:]) / len(x)
    centred = elementwise(np.subtract, x, mean)
    deviation = np.sqrt(unbroadcast(centred, mean.shape, times=centred) / len(x) + 1e-5)
    return elementwise(np.divide, centred, deviation), deviation


def normalised_backwards(d_normal, normal, deviation):
    """Return the gradient by what was normalised: mean and deviation depend on it, too."""
    mean = unbroadcast(d_normal, deviation.shape) / len(normal)
    along = unbroadcast(d_normal, deviation.shape, times=normal) / len(normal)
    return (d_normal - mean - normal * along) / deviation


def loss_and_gradients(parameters, points, labels):
    """Return the mean squared error over a batch, and its gradient by each parameter."""
    weight, bias, scale, shift, readout, offset = parameters.values()
    # Forwards. Bias, scale and shift are stretched over the batch, the offset over all of the output.
    hidden = np.tanh(elementwise(np.add, points @ weight, bias))
    normal, deviation = normalised(hidden)
    shifted = elementwise(np.multiply, normal, scale)
    elementwise(np.add, shifted, shift, out=shifted)
    output = shifted @ readout + offset
    error = output - labels
    loss = np.mean(error**2)
    # Backwards: sum the gradient over all positions that an operand was stretched to; for a scale, sum products.
    d_output = 2 * error / error.size
    d_shifted = d_output @ readout.T
    d_hidden = normalised_backwards(elementwise(np.multiply, d_shifted, scale), normal, deviation)
    d_inner = d_hidden * (1 - hidden**2)
    gradients = {
        "weight": points.T @ d_inner,
        "bias": unbroadcast(d_inner, bias.shape),
        "scale": unbroadcast(d_shifted, scale.shape, times=normal),
        "shift": unbroadcast(d_shifted, shift.shape),
        "readout": shifted.T @ d_output,
        "offset": unbroadcast(d_output, offset.shape),
    }
    return loss, gradients


def spirals(rng, count):
    """Draw points of two spirals that turn about each other, and which one each is of: -1 or 1."""
    labels = rng.choice([-1.0, 1.0], (count, 1))
    turn = rng.uniform(0.25, 1.25, (count, 1))
    angle = 2 * np.pi * turn + np.pi / 2 * labels
    return turn * np.hstack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.01, (count, 2)), labels


def train(steps=2000, rate=0.01):
    """Train by Adam on all points at once; return the loss of each step."""
    rng = np.random.default_rng(0)
    points, labels = spirals(rng, 400)
    parameters = initial(rng)
    mean = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    square = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    losses = []
    for step in range(1, steps + 1):
        loss, gradients = loss_and_gradients(parameters, points, labels)
        losses.append(loss)
        for name, gradient in gradients.items():
            mean[name] += 0.1 * (gradient - mean[name])
            square[name] += 0.001 * (gradient**2 - square[name])
            size = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
            parameters[name] -= rate * mean[name] / (1 - 0.9**step) / size
    return losses


if __name__ == "__main__":
    losses = train()
    for step in range(0, len(losses), 400):
        print(f"step {step:5}: loss {losses[step]:.4f}")
    print(f"at last   : loss {losses[-1]:.4f}")
