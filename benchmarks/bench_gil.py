"""From how many bytes on should the kernel give the GIL away? The table behind `RELEASING` in _runtime/core.pxd.

    python benchmarks/bench_gil.py

The same memset is called through two prototypes of ctypes that differ in nothing but that one keeps the GIL and the
other one gives it away. Alone, the difference is the price of the way there and back. Beside a thread of busy Python
code it is the time to get the GIL back, up to the switch interval: what a call that gives it away loses. What the
other thread loses by a call that keeps it is the call's own time.
"""

import ctypes
import sys
import threading
from time import perf_counter

import numpy as np
from machines import measure

import bcast
from bcast._benchmark.table import cpu

SIZES = [1024 << i for i in range(11)]
PROTOTYPE = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
ADDRESS = ctypes.cast(ctypes.memset, ctypes.c_void_p).value
KEEP, GIVE = ctypes.PYFUNCTYPE(*PROTOTYPE)(ADDRESS), ctypes.CFUNCTYPE(*PROTOTYPE)(ADDRESS)


def calls(size: int) -> dict:
    """Make the three calls that write `size` bytes."""
    out = np.ones(size, np.uint8)
    data, address = out[:1].copy(), out.ctypes.data
    return {
        "keep": lambda: KEEP(address, 1, size),
        "give": lambda: GIVE(address, 1, size),
        "bcast": lambda: bcast.broadcast(data, (size,), out=out),
    }


def beside_a_busy_thread(call, seconds: float = 0.2) -> float:
    """Return the mean time of a call while another thread runs Python code without a pause."""
    stop = threading.Event()

    def spin():
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        count, start = 0, perf_counter()
        while (elapsed := perf_counter() - start) < seconds:
            call()
            count += 1
    finally:
        stop.set()
        thread.join()
    return elapsed / count


def main() -> None:
    """Print the table."""
    interval = sys.getswitchinterval() * 1e3
    print(f"{cpu()}; CPython {sys.version.split()[0]}; switch interval {interval:g} ms; times in us")
    print("price: what giving the GIL away and back adds to a call alone; share: of a call of bcast")
    print(f"{'':8}  {'alone':^45}  {'beside a busy thread':^29}")
    print(f"{'bytes':>8}  {'keep':>9} {'give':>9} {'bcast':>9} {'price':>8} {'share':>6}  ", end="")
    print(f"{'keep':>9} {'give':>9} {'bcast':>9}")
    for size in SIZES:
        versions = calls(size)
        alone = {name: min(rounds) * 1e6 for name, rounds in measure(versions, 0.3).items()}
        busy = {name: beside_a_busy_thread(call) * 1e6 for name, call in versions.items()}
        price = alone["give"] - alone["keep"]
        print(
            f"{size:8}  {alone['keep']:9.2f} {alone['give']:9.2f} {alone['bcast']:9.2f}"
            f" {price:8.3f} {price / alone['bcast']:6.1%}"
            f"  {busy['keep']:9.2f} {busy['give']:9.2f} {busy['bcast']:9.2f}"
        )


if __name__ == "__main__":
    main()
