"""Pictures made ready for a network: `bcast.chain` beside NumPy and the installed peers, in one run.

    python benchmarks/bench_chain.py --threads 2 [--rounds 5] [--only SUBSTRING] [--markdown]

Bytes become floats, less a mean and divided by a deviation for each channel: in HWC, or from HWC to CHW. Calls of all
systems take turns. Before each turn comes a pause of 20 ms, in which other systems' threads fall asleep; the least time
of all rounds counts. Results are written to an array that was made and written before, or to a fresh one; jax, OpenCV
and albucore always make their own. With one thread the process has one CPU. The bound is the time in which all bytes,
those read and those written, could be written: at the speed at which the same result is filled with one number, by as
many threads.

Peers make what they can: OpenCV's `LUT` looks results up, its `blobFromImages` knows one deviation for all channels,
and both are in float32 alone, as is albucore's `normalize`. In float16, NumPy and bcast compute in float32.
"""

import argparse
import os
from functools import partial
from importlib.util import find_spec

import numpy as np
from bench_elementwise import mean as geometric_mean
from bench_elementwise import measured

import bcast

SHAPES = (1, 224, 224), (32, 224, 224), (1, 512, 512), (1, 1080, 1080), (1, 2160, 3840)
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)
LARGE_BYTES = 1 << 23  # results that take half as many rounds
AXES = {"HWC": (0, 1, 2, 3), "CHW": (0, 3, 1, 2)}
OWN = ("bcast", "bound", "numpy")


class Task:
    """Pictures, and where they go: a layout, a dtype, and whether the result is fresh."""

    def __init__(self, pictures, layout, dtype, fresh, threads):
        self.pictures, self.layout, self.dtype, self.fresh, self.threads = pictures, layout, dtype, fresh, threads
        self.turned = pictures.transpose(AXES[layout])
        self.mean, self.std = (x if layout == "HWC" else x.reshape(3, 1, 1) for x in (MEAN, STD))
        self.warm = np.zeros(self.turned.shape, dtype)

    @property
    def name(self):
        """The name that `--only` looks at."""
        count, height, width, _ = self.pictures.shape
        state = "fresh" if self.fresh else "warm"
        return f"{count} x {height} x {width}, {self.layout}, {self.dtype}, {state}"

    def out(self):
        """Where the next result goes."""
        return np.empty_like(self.warm) if self.fresh else self.warm

    def right(self):
        """Compute by NumPy what is right."""
        return ((self.turned.astype(np.float32) - self.mean) / self.std).astype(self.dtype)


def of_bcast(task):
    steps = (np.subtract, MEAN), (np.divide, STD)
    options = {"dtype": np.float32} | ({"mode": "pdpd", "axis": 1} if task.layout == "CHW" else {})
    call = partial(bcast.chain, task.turned, *steps, **options)
    return call if task.fresh and task.dtype == "float32" else lambda: call(out=task.out())


def of_bound(task):
    one = np.ones((), task.dtype)
    fill = partial(bcast.broadcast, one, task.turned.shape)
    return fill if task.fresh else partial(fill, out=task.warm)


def of_numpy(task):
    """As it is mostly written."""

    def call():
        result = (task.turned.astype(np.float32) - task.mean) / task.std
        if task.fresh:
            return np.ascontiguousarray(result, task.dtype)
        task.warm[...] = result
        return task.warm

    return call


def of_numpy_in_place(task):
    """Without temporaries; of float16 it would compute in pieces, and round twice."""
    if task.dtype != "float32":
        return None

    def call():
        out = task.out()
        np.subtract(task.turned, task.mean, out=out, dtype=np.float32)
        return np.divide(out, task.std, out=out, dtype=np.float32)

    return call


def of_torch(task):
    import torch

    torch.set_num_threads(task.threads)
    data, mean, std, warm = map(torch.from_numpy, (task.turned, task.mean, task.std, task.warm))

    def call():
        out = torch.empty_like(warm) if task.fresh else warm
        return torch.sub(data, mean, out=out).div_(std)

    return call


def of_jax(task):
    import jax

    data = jax.numpy.asarray(task.pictures)
    function = jax.jit(
        lambda x: ((x.transpose(AXES[task.layout]).astype("float32") - task.mean) / task.std).astype(task.dtype)
    )
    return lambda: function(data).block_until_ready()


def of_numexpr(task):
    import numexpr

    if task.dtype != "float32":
        return None
    numexpr.set_num_threads(task.threads)
    names = {"x": task.turned, "m": task.mean, "s": task.std}
    return lambda: numexpr.evaluate("(x - m) / s", names, out=task.out(), casting="unsafe")


def of_lut(task):
    import cv2

    if task.dtype != "float32" or task.layout != "HWC":
        return None
    cv2.setNumThreads(task.threads)
    table = ((np.arange(256, dtype=np.float32)[:, None] - MEAN) / STD)[None]
    tall = task.pictures.reshape(-1, *task.pictures.shape[2:])
    return lambda: cv2.LUT(tall, table)


def of_blobs(task):
    import cv2

    if task.dtype != "float32" or task.layout != "CHW":
        return None
    cv2.setNumThreads(task.threads)
    pictures = list(task.pictures)
    return lambda: cv2.dnn.blobFromImages(pictures, 1 / 58, mean=MEAN.tolist())


def of_albucore(task):
    import albucore

    if task.dtype != "float32" or task.layout != "HWC":
        return None
    pictures, factor = list(task.pictures), 1 / STD
    return lambda: [albucore.normalize(picture, MEAN, factor) for picture in pictures]


SYSTEMS = {"bcast": of_bcast, "bound": of_bound, "numpy": of_numpy, "numpy, in place": of_numpy_in_place}
PEERS = {"torch": of_torch, "jax": of_jax, "numexpr": of_numexpr, "cv2.LUT": of_lut, "cv2 blobs": of_blobs}
PEERS |= {"albucore": of_albucore}
MODULES = {"cv2.LUT": "cv2", "cv2 blobs": "cv2"}


def tasks(threads):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        pictures = rng.integers(0, 256, (*shape, 3), np.uint8)
        for layout in AXES:
            for dtype in ("float32", "float16"):
                for fresh in (False, True):
                    yield Task(pictures, layout, dtype, fresh, threads)


def prepared(task, systems):
    """Prepare the call of each system that can, once its result is the right one but for rounding."""
    calls, right = {}, task.right()
    for name, system in systems.items():
        call = system(task)
        if call is not None:
            result = np.asarray(call()).reshape(right.shape)
            assert result.dtype == right.dtype, (name, result.dtype)
            if name == "bcast":
                np.testing.assert_array_equal(result, right, strict=True)
            elif name != "bound":
                np.testing.assert_allclose(result, right, rtol=0.05 if name == "cv2 blobs" else 0.01, atol=0.01)
            calls[name] = call
    return calls


def row(task, least, systems):
    """Write the times of each system, and how bcast's compares with the best of the others', NumPy's and the bound."""
    ours = least["bcast"]
    written = least["bound"]
    bound = written * (1 + task.pictures.nbytes / task.warm.nbytes)
    peer = min(set(least) - set(OWN), key=least.get)
    columns = [task.name, *[f"{least[name] * 1e6:.1f}" if name in least else "" for name in systems if name != "bound"]]
    ratios = least[peer] / ours, least["numpy"] / ours, bound / ours, written / ours
    columns += [f"{bound * 1e6:.1f}", f"{ratios[0]:.2f} {peer}", f"{ratios[1]:.2f}", f"{ratios[2]:.2f}"]
    return columns, ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="a part of the names of the cases")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # which XLA reads, that has no other switch
    bcast.set_num_threads(options.threads)
    systems = SYSTEMS | {name: peer for name, peer in PEERS.items() if find_spec(MODULES.get(name, name))}
    print(f"NumPy {np.__version__}; threads: {options.threads}; times in us, and of others to bcast's\n")
    head = ["case", *[name for name in systems if name != "bound"], "bound", "best peer", "NumPy", "bound"]
    print(f"| {' | '.join(head)} |\n|---|{'--:|' * (len(head) - 1)}")
    found = []
    for task in tasks(options.threads):
        if options.only in task.name:
            rounds = options.rounds if task.warm.nbytes < LARGE_BYTES else -(-options.rounds // 2)
            columns, ratios = row(task, measured(prepared(task, systems), rounds), systems)
            print(f"| {' | '.join(columns)} |" if options.markdown else "  ".join(columns), flush=True)
            found.append((ratios, task.name, task.warm.nbytes))
    for i, name in enumerate(("the best peer's", "NumPy's", "the bound's")):
        print(f"\nmean: {geometric_mean(ratios[i] for ratios, *_ in found):.2f} of {name} speed")
    of_writing = [ratios[3] for ratios, _, nbytes in found if nbytes >= 1 << 20]
    print(f"\nof the speed of writing alone, from 1 MiB on: {min(of_writing, default=0):.2f} or more")
    print("\nlost to the best peer:", *[f"\n  {name}: {ratios[0]:.2f}" for ratios, name, _ in found if ratios[0] < 1])


if __name__ == "__main__":
    main()
