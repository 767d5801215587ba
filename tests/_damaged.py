"""Damaged .npy files for `apply`: a program of its own, as a damaged header once ended the process.

Run in an empty folder, as ``python _damaged.py COUNT SEED``; it prints one JSON object.
"""

import contextlib
import io
import json
import random
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from bcast.__main__ import main

OLD = b"what was there before"
FIELDS = [("a", "<f4"), ("λ", "|S3")]
DTYPES = ["|u1", "<f8", ">i4", "<c16", "|b1", "<M8[D]", "|S3", "<U2", "|V5", FIELDS, [("x", "<i2", (2,))]]
SHAPES = [(), (3,), (2, 3), (1, 3), (0, 3), (2, 1, 3)]
NUMBERS = ["0", "1", "-1", "2", "3", "65536", "4294967296", str(2**61 + 1), str(2**63), str(2**64), "9" * 400, "True"]
NUMBERS += ["-1", "-1", "-1", "-0", "1.0", "None", "'3'", "1L", "-9223372036854775808"]
DESCRS = ["'|V0'", "'|S0'", "'<U0'", "'|O'", "'O'", "'<f3'", "''", "'<f8'*9", "[]", "[('a', '|V0')]", "('<f8', (3,))"]
DESCRS += [
    "'|V0'",
    "'|S0'",
    "('|V0', (2,))",
    "('<i4', (-1,))",
    "[('a', '<f8'), ('a', '<f8')]",
    "[('', '|V4')]",
    "'<m8[7W]'",
    "'<M8[0s]'",
]
DESCRS += [
    "[('a', [('b', [('c', '<f8')])])]",
    "'|V9999999999'",
    "'<U4294967295'",
    "'<f8,<i4'",
    "3",
    "None",
    "b'<f8'",
    "{}",
]
DESCRS += [
    "'|S2147483647'",
    "'<U536870912'",
    "'T'",
    "'StringDType()'",
    "'<V8'",
    "'=f8'",
    "'float64'",
    "'x' * 9999",
    "()",
]
WHOLES = [
    "{}",
    "[]",
    "",
    "\n",
    "1",
    "(" * 300,
    "[" * 9000,
    "-" * 9000 + "1",
    "{" + "'a':" * 2000,
    "\x00",
    "'",
    "{'descr': ",
]
WHOLES += [
    "9" * 9000,
    "{'shape': (3,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
    " " * 20_000,
]


def choose(source):
    """Give the three fields of a header as text, and the data, which fit mostly."""
    dtype, shape = np.dtype(source.choice(DTYPES)), source.choice(SHAPES)
    fields = [repr(np.lib.format.dtype_to_descr(dtype)), source.choice(["False", "True"]), repr(shape)]
    data = source.randbytes(dtype.itemsize * int(np.prod(shape)))
    if dtype.kind == "b":
        data = bytes([byte & 1 for byte in data])
    return fields, bytes(len(data)) if dtype.kind == "U" else data


def damage_fields(source, fields):
    """Put nonsense in the place of fields."""
    if source.random() < 0.4:
        fields[0] = source.choice(DESCRS)
    if source.random() < 0.1:
        fields[1] = source.choice(["0", "None", "'False'", "1"])
    if source.random() < 0.5:
        lengths = source.choices(NUMBERS, k=source.choice([0, 1, 1, 1, 2, 2, 3, 65]))
        fields[2] = source.choice(["({},)", "({},)", "({},)", "[{}]", "{}"]).format(", ".join(lengths))


def damage_bytes(source, content):
    """Change a byte, take some out, put some in, or cut the end off."""
    place = source.randrange(len(content) if source.random() < 0.3 else 12)
    return source.choice(
        [
            content[:place] + source.randbytes(1) + content[place + 1 :],
            content[:place] + content[place + source.randrange(1, 9) :],
            content[:place] + source.randbytes(source.randrange(1, 9)) + content[place:],
            content[: source.randrange(len(content))],
        ]
    )


def damaged(source):
    """Make up the content of a file; a few are whole."""
    fields, data = choose(source)
    way = source.random()
    if way < 0.6:
        damage_fields(source, fields)
    text = "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}".format(*fields)
    if way > 0.95:
        text = source.choice(WHOLES)
    version = source.choice([1, 1, 2, 3])
    header = (text + "\n").encode("utf-8" if version == 3 else "latin-1", "replace")
    content = np.lib.format.magic(version, 0) + len(header).to_bytes(2 if version == 1 else 4, "little") + header
    return damage_bytes(source, content + data) if 0.6 < way < 0.9 else content + data


def loaded(path, mode=None):
    """Load a file; give its dtype, and its array as one of plain bytes."""
    with warnings.catch_warnings(action="ignore"):
        array = np.load(path, mmap_mode=mode)
    return array.dtype, array.view(f"V{array.itemsize}") if array.itemsize else array


def check(target):
    """Apply; tell what is wrong."""
    out, err = io.StringIO(), io.StringIO()
    Path("out.npy").write_bytes(OLD)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["apply", "in.npy", "out.npy", "--shape", target])
    except BaseException as error:
        return [f"raised {error!r}"]
    names = sorted(path.name for path in Path().iterdir())
    wrong = [] if names == ["in.npy", "out.npy"] else [f"left {names}"]
    if status == 2:
        if Path("out.npy").read_bytes() != OLD:
            wrong.append("wrote out.npy")
        if not err.getvalue().startswith("bcast: error: ") or err.getvalue().count("\n") != 1 or out.getvalue():
            wrong.append(f"said {out.getvalue()!r} and {err.getvalue()!r}")
    elif status or err.getvalue():
        wrong.append(f"status {status}, said {err.getvalue()!r}")
    else:
        # Arrays of arrays are what NumPy reads from a map alone.
        (dtype, data), (kept, result) = loaded("in.npy", "r"), loaded("out.npy")
        if kept != dtype or result.tobytes() != np.broadcast_to(data, result.shape).tobytes():
            wrong.append("wrote something else")
    return [*wrong, status]


def run(count, source):
    wrong, statuses = [], Counter()
    for _ in range(count):
        content = damaged(source)
        Path("in.npy").write_bytes(content)
        *found, status = check(source.choice(["3", "2,3", "2,1,3", "2,0,3", "", "4,2,1,3", "3,2"]))
        statuses[status] += 1
        wrong += [f"{line}, by {content[:300]!r}" for line in found]
    return {"wrong": wrong, "statuses": statuses}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), random.Random(sys.argv[2]))))
