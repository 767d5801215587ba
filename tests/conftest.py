"""What pytest must know of before it collects the tests."""

import sys

# Importing openvino tells its makers so, over the network and from a process forked beside whatever else is loaded.
sys.modules.setdefault("openvino_telemetry", None)

# Markers in NumPy's own tests, which test_numpys_own.py imports.
NUMPYS = ("leaks_references", "parallel_threads", "parallel_threads_limit", "slow", "thread_unsafe", "valgrind_error")


def pytest_configure(config):
    for marker in NUMPYS:
        config.addinivalue_line("markers", f"{marker}: of NumPy's own tests; it has no effect here")
