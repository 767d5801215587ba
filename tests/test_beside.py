"""bcast beside other libraries with threads: in one process, and in child processes of one that has used bcast.

Each script runs in its own process; a child ends after at most one minute.
"""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.peers, pytest.mark.skipif(sys.platform == "win32", reason="nothing forks here")]

# What each library computes, on several threads, and checks.
WORK = {
    "bcast": """
data = np.arange(64, dtype=np.int32)[:, None]
assert np.array_equal(bcast.broadcast_to(data, (64, 1 << 18)), np.broadcast_to(data, (64, 1 << 18)))
assert bcast.unbroadcast(np.ones((1 << 12, 1 << 10), np.float32), (1 << 10,)).tolist() == [1 << 12] * (1 << 10)
""",
    "torch": """
torch.set_num_threads(3)
assert int(torch.arange(1 << 22).remainder(7).sum()) == 12582907
assert torch.ones(300, 300).matmul(torch.ones(300, 300)).unique().tolist() == [300]
""",
    "sklearn": """
points = np.concatenate([np.zeros((20_000, 2)), np.ones((20_000, 2))])
labels = sklearn.cluster.KMeans(2, n_init=1, random_state=0).fit(points).labels_
assert sorted(set(labels[:20_000])) != sorted(set(labels[20_000:])) and len(set(labels)) == 2
""",
    "numba": """
assert parallel_sum(np.arange(1 << 20)) == (1 << 19) * ((1 << 20) - 1)
""",
}
IMPORTS = {
    "bcast": "import bcast; bcast.set_num_threads(3); bcast._runtime.core.set_pool_limit(3)",
    "torch": "import torch",
    "sklearn": "import sklearn.cluster",
    "numba": """
import numba
@numba.njit(parallel=True)
def parallel_sum(values):
    total = 0
    for i in numba.prange(values.size):
        total += values[i]
    return total
""",
}
CHILDS_OWN = "\nbcast.set_num_threads(3)\n" + WORK["bcast"]
OTHERS = [name for name in WORK if name != "bcast"]


def run(script):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "BCAST_"))}
    environment |= {"NUMBA_NUM_THREADS": "3", "OMP_NUM_THREADS": "3"}
    command = [sys.executable, "-W", "ignore", "-c", f"import faulthandler, os, signal\nimport numpy as np\n{script}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800, check=False)


def check(script):
    done = run(script)
    assert done.returncode == 0, done.stdout + done.stderr


def forking(script, times, before=""):
    """Run a script in children, one after the other; another one before each fork."""
    return f"""
for _ in range({times}):
    exec({before!r})
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        exec({script!r})
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.mark.parametrize("order", [["bcast", *OTHERS], [*OTHERS, "bcast"]], ids=["first", "last"])
def test_in_one_process(order):
    for name in OTHERS:
        pytest.importorskip(name)
    check("\n".join([IMPORTS[name] for name in order] + [WORK[name] for name in order] * 5))


@pytest.mark.parametrize("imported", ["in the parent", "in the child"])
@pytest.mark.parametrize("name", OTHERS)
def test_in_children_of_a_process_that_has_used_bcast(name, imported):
    """A child has none of its parent's threads; what counts on them waits for ever."""
    pytest.importorskip(name)
    before, there = (IMPORTS[name], "") if imported == "in the parent" else ("", IMPORTS[name])
    check("\n".join([before, IMPORTS["bcast"], WORK["bcast"], forking(there + WORK[name] + CHILDS_OWN, 3)]))


@pytest.mark.drill
def test_torch_in_many_children():
    pytest.importorskip("torch")
    check("\n".join([IMPORTS["torch"], IMPORTS["bcast"], forking(WORK["torch"] + CHILDS_OWN, 300, WORK["bcast"])]))
