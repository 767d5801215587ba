"""What pytest must know of before it collects the tests, and the fixtures of the command line's."""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

# Importing openvino tells its makers so, over the network and from a process forked beside whatever else is loaded.
sys.modules.setdefault("openvino_telemetry", None)

# Markers in NumPy's own tests, which test_numpys_own.py imports.
NUMPYS = ("leaks_references", "parallel_threads", "parallel_threads_limit", "slow", "thread_unsafe", "valgrind_error")

pytest.register_assert_rewrite("_commands")


def pytest_configure(config):
    for marker in NUMPYS:
        config.addinivalue_line("markers", f"{marker}: of NumPy's own tests; it has no effect here")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run the command line; give its status, and what it wrote to stdout and to stderr."""
    from bcast.__main__ import main

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def bad_files(folder):
    """Put files of all kinds into the folder, of which only in.npy and one.npy are good."""
    from _commands import OLD, save_header

    row = np.arange(3.0)
    np.save("in.npy", row)
    whole = (folder / "in.npy").read_bytes()
    np.save("one.npy", row[:1])
    np.savez("in.npz", row)
    np.save("objects.npy", np.array([None, 1, "a"]), allow_pickle=True)
    (folder / "empty.npy").write_bytes(b"")
    (folder / "text.npy").write_bytes(b"1.0, 2.0, 3.0\n")
    (folder / "truncated.npy").write_bytes(whole[:-1])
    (folder / "broken.npy").write_bytes(np.lib.format.magic(1, 0) + b"\x08\x00{(((((\\n")
    save_header("boundless.npy", (), "f8", edit=("()", "(4294967296, 4294967296, 3)"))
    save_header("deep.npy", (), "f8", version=1, edit=("()", "-" * 9000 + "1"))
    (folder / "out.npy").write_bytes(OLD)


@pytest.fixture
def shared(monkeypatch):
    """Work in a folder like /tmp."""
    path = Path(tempfile.mkdtemp(dir="/tmp"))
    path.chmod(0o1777)
    monkeypatch.chdir(path)
    np.save("in.npy", np.arange(3.0))
    yield path
    shutil.rmtree(path)
