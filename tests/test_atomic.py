"""Atomic writes: a file gets its name only when it is complete; names, links, permissions, killed runs."""

import errno
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from _commands import OLD, fail_with, files, halfway, posix, program, python, succeed

from bcast.__main__ import main
from bcast._cli import apply

root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be other users")
NOBODY, SOMEBODY = 65534, 65533
APPLY = ["apply", "in.npy", "out.npy", "--shape", "9,3"]
NEW = np.broadcast_to(np.arange(3.0), (9, 3))


@pytest.fixture(autouse=True)
def folder(folder):
    np.save("in.npy", np.arange(3.0))
    return folder


def temporaries():
    return [name for name in files() if name.startswith(".bcast-")]


# Names.


@pytest.mark.parametrize(("target", "shape"), [("3", (3,)), ("4,3", (4, 3))], ids=["same_size", "larger"])
def test_in_and_out_may_be_the_same_file(run, monkeypatch, target, shape):
    monkeypatch.setattr(apply, "BLOCK_BYTES", 16)
    succeed(run, "in.npy", "in.npy", "--shape", target)
    np.testing.assert_array_equal(np.load("in.npy"), np.broadcast_to(np.arange(3.0), shape), strict=True)
    assert files() == ["in.npy"]


def test_runs_at_once_do_not_collide(run, monkeypatch):
    np.save("other.npy", np.arange(3.0) + 10)
    seen = []

    def run_another():
        seen.append(files())
        assert main(["apply", "other.npy", "out.npy", "--shape", "5,3"]) == 0
        seen.append(np.load("out.npy"))

    halfway(monkeypatch, run_another)
    status, _, err = run(*APPLY)
    assert (status, err) == (0, "")
    assert len(seen[0]) == 3
    assert "out.npy" not in seen[0]
    np.testing.assert_array_equal(seen[1], np.broadcast_to(np.arange(3.0) + 10, (5, 3)))
    np.testing.assert_array_equal(np.load("out.npy"), NEW)
    assert files() == ["in.npy", "other.npy", "out.npy"]


@posix
def test_links(run, folder):
    """Symbolic links are followed to their targets; dangling ones are replaced, and hard links are separated."""
    (folder / "there").mkdir()
    (folder / "there" / "real.npy").write_bytes(OLD)
    (folder / "second").symlink_to("there/real.npy")
    for name, target in ("out.npy", "second"), ("lost.npy", "nowhere"):
        (folder / name).symlink_to(target)
        succeed(run, "in.npy", name, *APPLY[3:])
        np.testing.assert_array_equal(np.load(name), NEW)
        assert (folder / name).is_symlink() == (name == "out.npy")
    np.testing.assert_array_equal(np.load("there/real.npy"), NEW)
    (folder / "other.npy").write_bytes(OLD)
    (folder / "hard.npy").hardlink_to("other.npy")
    succeed(run, "in.npy", "hard.npy", *APPLY[3:])
    assert (folder / "other.npy").read_bytes() == OLD
    assert list(folder.rglob(".bcast-*")) == []


@posix
def test_only_files_are_replaced(run, folder):
    os.mkfifo("pipe.npy")
    (folder / "circle.npy").symlink_to("other")
    (folder / "other").symlink_to("circle.npy")
    before = files()
    for name, reason in ("pipe.npy", "not a regular file"), ("circle.npy", os.strerror(errno.ELOOP)):
        assert run("apply", "in.npy", name, *APPLY[3:]) == (2, "", f"bcast: error: {name}: {reason}\n")
    assert files() == before


@posix
def test_a_folder_that_appeared_meanwhile_is_not_replaced(run, monkeypatch):
    halfway(monkeypatch, lambda: Path("out.npy").mkdir())
    assert run(*APPLY) == (2, "", f"bcast: error: out.npy: {os.strerror(errno.EISDIR)}\n")
    assert files() == ["in.npy", "out.npy"]


# Permissions.


@posix
@pytest.mark.parametrize("path", ["out.npy", "."])
def test_no_right_to_write(folder, path):
    """The command runs as another user if root runs the tests, because root may write everywhere."""
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(0o666)
    folder.chmod(0o777)
    (folder / path).chmod(0o555)
    code = f"""import os, sys
from bcast.__main__ import main
main(["apply", "none.npy", "out.npy", "--shape", "3"])  # imports what the other user may have no right to read
if os.geteuid() == 0:
    os.setgid({NOBODY}), os.setuid({NOBODY})
sys.exit(main(sys.argv[1:]))"""
    done = python("-c", code, *APPLY)
    folder.chmod(0o777)
    message = f"bcast: error: out.npy: {os.strerror(errno.EACCES)}"
    assert (done.returncode, done.stderr.splitlines()[1:]) == (2, [message])
    assert (folder / "out.npy").read_bytes() == OLD
    assert files() == ["in.npy", "out.npy"]


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_the_temporary_is_private_from_the_start(run, monkeypatch, umask, exists):
    umask(0)
    if exists:
        Path("out.npy").touch(mode=0o666)
    made, open_file = [], os.open

    def watch(path, flags, mode=0o777, **options):
        descriptor = open_file(path, flags, mode, **options)
        if Path(path).name.startswith(".bcast-"):
            made.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    monkeypatch.setattr(os, "open", watch)
    halfway(monkeypatch, lambda: made.extend(Path(name).stat().st_mode & 0o777 for name in temporaries()))
    succeed(run, *APPLY[1:])
    assert made == [0o600, 0o600]
    assert Path("out.npy").stat().st_mode & 0o777 == 0o666


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_are_those_of_any_new_file(run, umask, mask):
    umask(mask)
    Path("plain").touch()
    succeed(run, *APPLY[1:])
    assert Path("out.npy").stat().st_mode == Path("plain").stat().st_mode
    assert umask(0) == mask


@posix
@pytest.mark.parametrize(("old", "new"), [(0o640, 0o640), (0o4755, 0o755)])
def test_permissions_of_an_existing_file_stay(run, folder, old, new):
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(old)
    succeed(run, *APPLY[1:])
    assert (folder / "out.npy").stat().st_mode & 0o7777 == new


@posix
def test_another_group_gets_nothing(run, folder, monkeypatch):
    """If the file's group cannot be kept, another group does not get its permissions."""
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(0o664)
    stat = Path.stat

    def of_another_group(path, **options):
        entry = stat(path, **options)
        return os.stat_result([*entry[:5], entry.st_gid + 1, *entry[6:]]) if path.name == "out.npy" else entry

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", of_another_group)
        patch.setattr(os, "chown", fail_with(PermissionError()))
        succeed(run, *APPLY[1:])
    assert (folder / "out.npy").stat().st_mode & 0o777 == 0o600


@root
def test_root_keeps_the_owner(run):
    Path("out.npy").write_bytes(OLD)
    Path("out.npy").chmod(0o640)
    os.chown("out.npy", NOBODY, SOMEBODY)
    succeed(run, *APPLY[1:])
    entry = Path("out.npy").stat()
    assert (entry.st_uid, entry.st_gid, entry.st_mode & 0o777) == (NOBODY, SOMEBODY, 0o640)


# Runs that are killed.


@posix
def test_a_killed_run_does_not_change_the_target(folder):
    (folder / "out.npy").write_bytes(OLD)
    assert python(program("_halfway.py"), "kill", *APPLY[1:]).returncode == -signal.SIGKILL
    (name,) = temporaries()
    assert Path(name).stat().st_mode & 0o777 == 0o600
    assert (folder / "out.npy").read_bytes() == OLD
