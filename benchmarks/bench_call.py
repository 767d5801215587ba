"""What does a small call cost, step by step and mode by mode? The tables behind docs/design/calls.md.

    python benchmarks/bench_call.py

Four floats become 4x4 of them: 64 bytes, so that writing them is the least of it. All calls are timed by turns, and
from each is taken off what timing an empty lambda costs. The steps are called from Python, as `broadcast` does not:
what such a call costs by itself is the first row, `as_array` of an array, which has nothing to do. At last 64 floats
are summed.
"""

import sys

import numpy as np
from machines import measure

import bcast
from bcast._api.converted import as_array
from bcast._benchmark.table import cpu
from bcast._kernel import replicate
from bcast._rules.core import align
from bcast._runtime.core import result_array, shape_of

NAMES = {
    **{function.__name__: function for function in (align, as_array, replicate, result_array, shape_of)},
    **{name: getattr(bcast, name) for name in bcast.__all__},
    "np": np,
    "row": np.arange(4, dtype=np.float32),
    "like": np.zeros((4, 4), np.float32),
    "out": np.zeros((4, 4), np.float32),
    "square": np.zeros((8, 8), np.float32),
    "axes": [1],
    "new": [0],
    "new_set": {0},
    "shape": [4, 4],
    "alignment": align((4,), (4, 4)),
}

STEPS = (
    'as_array("data", row)',
    "shape_of(row)",
    "align((4,), (4, 4))",
    'result_array(None, row, (4, 4), "shape")',
    'result_array(out, row, (4, 4), "shape")',
    "replicate(row, alignment, out)",
)
CALLS = (
    "broadcast(row, (4, 4))",
    "broadcast(row, shape)",
    'broadcast(row, (4, 4), axes, mode="explicit")',
    'broadcast(row, (4, 4), (1,), mode="explicit")',
    'broadcast(row, (4, 4), mode="explicit", broadcast_axes=new)',
    'broadcast(row, (4, 4), mode="explicit", broadcast_axes=(0,))',
    'broadcast(row, (4, 4), mode="explicit", broadcast_axes=new_set)',
    'broadcast(row, (4, 4), mode="bidirectional")',
    'broadcast(row, (4, 4), mode="pdpd")',
    'broadcast(row, (4, 4), mode="pdpd", axis=1)',
    'broadcast(like, (4, 4), mode="none")',
    "broadcast_like(row, like)",
    "broadcast_to(row, (4, 4))",
)
SUMS = ("unbroadcast(square, (8,))", "unbroadcast(square, (1, 8))", "unbroadcast(square, (8, 1))")
OWN_MEMORY = "like.copy()"
OF_SQUARE = "square.copy()"
SAME_MEMORY = "np.copyto(out, row)"


def warm(call: str) -> str:
    """Let a call write into `out`."""
    return f"{call[:-1]}, out=out)"


def main() -> None:
    """Print the tables."""
    expressions = [OWN_MEMORY, SAME_MEMORY, *STEPS, *CALLS, *map(warm, CALLS), "infer_shape((4,), (4, 4))"]
    expressions += [OF_SQUARE, *SUMS]
    calls = {expression: eval(f"lambda: {expression}", NAMES) for expression in ["None", *expressions]}
    for call in calls.values():
        call()
    times = {expression: min(rounds) * 1e9 for expression, rounds in measure(calls, 10).items()}
    nothing = times.pop("None")
    times = {expression: time - nothing for expression, time in times.items()}
    print(f"{cpu()}; CPython {sys.version.split()[0]}; NumPy {np.__version__}; times in ns")
    for expression in (*STEPS, OWN_MEMORY, SAME_MEMORY, "infer_shape((4,), (4, 4))"):
        print(f"{expression:<63} {times[expression]:6.0f}")
    print(f"\n{'':63} {'fresh':>6} {OWN_MEMORY:>12} {'warm':>6} {SAME_MEMORY:>20}")
    for call in CALLS:
        fresh, into = times[call], times[warm(call)]
        print(
            f"{call:<63} {fresh:6.0f} {fresh / times[OWN_MEMORY]:12.2f} {into:6.0f} {into / times[SAME_MEMORY]:20.2f}"
        )
    print(f"\n{'':63} {'fresh':>6} {OF_SQUARE:>14}")
    for call in SUMS:
        print(f"{call:<63} {times[call]:6.0f} {times[call] / times[OF_SQUARE]:14.2f}")


if __name__ == "__main__":
    main()
