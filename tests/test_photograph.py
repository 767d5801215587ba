"""Real input: a photograph goes from gray to RGB and RGBA, alone, in a batch, and into a part of a larger image."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import bcast


@pytest.fixture(scope="module")
def photograph():
    """The photograph of a cameraman that scikit-image carries in its package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skimage import data
    assert Path(data.__file__).with_name("camera.png").is_file()  # so that nothing is downloaded
    gray = data.camera()
    assert gray.shape == (512, 512)
    assert gray.dtype == np.uint8
    assert len(np.unique(gray)) > 200  # a photograph, no flat field that any mapping of axes would get right
    gray.flags.writeable = False
    return gray


@pytest.mark.parametrize("channels", [3, 4], ids=["RGB", "RGBA"])
@pytest.mark.parametrize("scale", [np.uint8(1), np.float32(1 / 255)], ids=["uint8", "float32"])
def test_channels_last(photograph, scale, channels):
    gray = photograph * scale
    assert gray.dtype == scale.dtype
    colour = bcast.broadcast(gray, (*gray.shape, channels), axes_mapping=[0, 1], mode="explicit")
    np.testing.assert_array_equal(colour, np.stack([gray] * channels, axis=-1), strict=True)
    assert colour.flags.c_contiguous
    assert colour.flags.owndata
    colour[..., -1] = 0  # the caller's own to write to
    np.testing.assert_array_equal(colour[..., 0], gray)


def test_channels_first(photograph):
    planes = bcast.broadcast(photograph, (3, 512, 512), axes_mapping=[1, 2], mode="explicit")
    np.testing.assert_array_equal(planes, np.stack([photograph] * 3), strict=True)


def test_both_spellings_and_pdpd_agree(photograph):
    target = (*photograph.shape, 3)
    expected = np.dstack([photograph] * 3)
    for spelling in (
        {"mode": "explicit", "axes_mapping": (0, 1)},
        {"mode": "explicit", "broadcast_axes": {2}},
        {"mode": "pdpd", "axis": 0},
    ):
        np.testing.assert_array_equal(bcast.broadcast(photograph, target, **spelling), expected, strict=True)


def test_batch_of_different_crops(photograph):
    batch = np.stack([photograph[i * 16 : i * 16 + 300, i * 20 : i * 20 + 200] for i in range(8)])
    colour = bcast.broadcast(batch, (8, 300, 200, 3), axes_mapping=[0, 1, 2], mode="explicit")
    np.testing.assert_array_equal(colour, np.repeat(batch[..., np.newaxis], 3, axis=-1), strict=True)


@pytest.mark.parametrize(
    "view",
    [
        lambda gray: gray[100:356, 37:293],
        lambda gray: gray[::-1, ::2],
        lambda gray: gray.T,
        lambda gray: np.rot90(gray)[3::5, 1::7],
    ],
    ids=["crop", "flipped", "transposed", "thumbnail"],
)
def test_views_of_it(photograph, view):
    gray = view(photograph)
    colour = bcast.broadcast(gray, (*gray.shape, 3), axes_mapping=[0, 1], mode="explicit")
    np.testing.assert_array_equal(colour, np.stack([gray] * 3, axis=-1), strict=True)


def test_into_a_region_of_a_mapped_file(photograph, tmp_path):
    file = tmp_path / "canvas.npy"
    canvas = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(600, 700, 3))
    canvas[...] = 128
    region = canvas[40:552, 90:602]
    result = bcast.broadcast(photograph, region.shape, axes_mapping=[0, 1], mode="explicit", out=region)
    assert result is region
    del canvas, region, result  # the file is complete once nobody maps it

    expected = np.full((600, 700, 3), 128, np.uint8)
    expected[40:552, 90:602] = photograph[..., np.newaxis]
    np.testing.assert_array_equal(np.load(file), expected, strict=True)


def test_whole_mapped_file(photograph, tmp_path):
    file = tmp_path / "colour.npy"
    mapped = np.lib.format.open_memmap(file, mode="w+", dtype=np.uint8, shape=(512, 512, 4))
    assert bcast.broadcast(photograph, mapped.shape, axes_mapping=[0, 1], mode="explicit", out=mapped) is mapped
    del mapped
    np.testing.assert_array_equal(np.load(file), np.stack([photograph] * 4, axis=-1), strict=True)
