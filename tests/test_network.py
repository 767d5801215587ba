"""The example of a network: its gradients match finite differences, and they train the network."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def network():
    spec = importlib.util.spec_from_file_location("network", Path(__file__).parents[1] / "examples" / "network.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradients_are_those_of_finite_differences(network):
    rng = np.random.default_rng(1)
    points, labels = network.spirals(rng, 17)
    parameters = {name: rng.normal(0, 1, shape) for name, shape in network.SHAPES.items()}
    _, gradients = network.loss_and_gradients(parameters, points, labels)
    assert set(gradients) == set(parameters)
    for name, parameter in parameters.items():
        assert gradients[name].shape == parameter.shape
        for place in np.ndindex(parameter.shape):
            losses = []
            for step in (1e-5, -1e-5):
                moved = {**parameters, name: parameter.copy()}
                moved[name][place] += step
                losses.append(network.loss_and_gradients(moved, points, labels)[0])
            assert gradients[name][place] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-6, abs=1e-8)


def test_training_succeeds(network):
    losses = network.train(steps=300)
    assert losses[0] > 0.5
    assert losses[-1] < 0.1
