"""The CPUs and memory that the system allows a process, read from files of control groups that these tests write."""

import os
import sys
import warnings

import pytest

from bcast._runtime import system

MIB = 1 << 20
LEAST, MORE = f"{600 * MIB}", f"{700 * MIB}"
QUOTA, PERIOD = "cpu/job/cpu.cfs_quota_us", "cpu/job/cpu.cfs_period_us"

TREES = {
    "no groups": ("", {}, None, None),
    "version 2": (
        *("0::/job/step", {"job/cpu.max": "max 100000", "job/step/cpu.max": "150000 100000", "job/memory.max": LEAST}),
        *(2, 600 * MIB),
    ),
    "version 2, the least of all": (
        *("0::/job/step", {"job/memory.max": LEAST, "job/step/memory.max": MORE, "job/cpu.max": "100000 100000"}),
        *(1, 600 * MIB),
    ),
    "version 2, throttled before": ("0::/", {"memory.max": "max", "memory.high": LEAST}, None, 600 * MIB),
    "version 2, in a container": ("0::/outside/id", {"memory.max": LEAST, "cpu.max": "50000 100000"}, 1, 600 * MIB),
    "version 1": (
        "4:memory:/job\n3:cpu,cpuacct:/job\n0::/",
        {
            "memory/job/memory.limit_in_bytes": LEAST,
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "cpu,cpuacct/job/cpu.cfs_quota_us": "200001",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
        },
        *(3, 600 * MIB),
    ),
    "version 1, by its other name": ("3:cpu,cpuacct:/job", {QUOTA: "100000", PERIOD: "100000"}, 1, None),
    "version 1, without a quota": ("3:cpu:/job", {QUOTA: "-1", PERIOD: "100000"}, None, None),
    "nonsense": ("0::/\nx\n", {"memory.max": "much", "cpu.max": "0 0"}, None, None),
}


@pytest.mark.parametrize(("membership", "files", "cpus", "memory"), TREES.values(), ids=TREES)
def test_limits_of_control_groups_are_found(membership, files, cpus, memory, tmp_path, monkeypatch):
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    (tmp_path / "membership").write_text(membership)
    monkeypatch.setattr(system, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(system, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert system.cpus() == (64 if cpus is None else cpus)
    monkeypatch.setattr(system, "_physical", lambda: 1 << 40)
    monkeypatch.setattr(system, "_own_limits", lambda: iter(()))
    assert system.memory() == (1 << 40 if memory is None else memory)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 7), (" ", 7), (" 1 ", 1), ("9" * 30, int("9" * 30)), *[(bad, 7) for bad in ("0", "-1", "1e9")]],
)
def test_a_variable_is_an_integer_or_gives_a_warning(text, value, monkeypatch):
    monkeypatch.setenv("BCAST_NUM_THREADS", text)
    bad = text.strip() and value == 7
    told = pytest.warns(RuntimeWarning, match=f"^`BCAST_NUM_THREADS` expected .*, got {text!r}; it is ignored$")
    with told if bad else warnings.catch_warnings(action="error"):
        assert system.setting("BCAST_NUM_THREADS", 1, 7) == value


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU can be chosen here")
def test_cpus_are_those_of_the_affinity_mask():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert system.cpus() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.skipif(sys.platform == "win32", reason="processes have no such limits")
def test_the_limits_of_the_process_itself():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = (1 << 40) - 4096 if hard == resource.RLIM_INFINITY else hard
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
        assert wanted in list(system._own_limits())
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
