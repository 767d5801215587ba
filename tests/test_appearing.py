"""A file that appears when it is whole: names, links, other users, permissions."""

import errno
import os
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from _commands import (
    NOBODY,
    OLD,
    SOMEBODY,
    as_user,
    check_refused,
    files,
    halfway,
    posix,
    root,
    succeed,
    temporaries,
)

from bcast.__main__ import main
from bcast._cli import appearing, apply

APPLY = ["apply", "in.npy", "out.npy", "--shape", "9,3"]
NEW = np.broadcast_to(np.arange(3.0), (9, 3))


@pytest.fixture(autouse=True)
def folder(folder):
    """Put an array into it."""
    np.save("in.npy", np.arange(3.0))
    return folder


# Names.


@pytest.mark.parametrize(("target", "shape"), [("3", (3,)), ("4,3", (4, 3))], ids=["same_size", "larger"])
def test_in_and_out_may_be_the_same_file(run, monkeypatch, target, shape):
    monkeypatch.setattr(apply, "PIECE", 16)
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


# Links, from out.npy on, and the file that they lead to.
CHAINS = {
    "relative": (["there/real.npy"], "there/real.npy"),
    "through_two": (["there/first", "second", "../real.npy"], "real.npy"),
    "up_and_down": (["there/../there/real.npy"], "there/real.npy"),
    "through_a_linked_folder": (["alias/real.npy"], "there/deep/real.npy"),
    "up_from_a_linked_folder": (["alias/../real.npy"], "there/real.npy"),
}


@posix
@pytest.mark.parametrize("exists", [True, False], ids=["real", "dangling"])
@pytest.mark.parametrize(("chain", "real"), CHAINS.values(), ids=CHAINS)
def test_links_are_followed(run, folder, chain, real, exists):
    (folder / "there" / "deep").mkdir(parents=True)
    (folder / "alias").symlink_to("there/deep")
    link = folder / "out.npy"
    for target in chain:
        link.symlink_to(target)
        link = link.parent / target
    if exists:
        (folder / real).write_bytes(OLD)
    succeed(run, *APPLY[1:])
    assert (folder / "out.npy").is_symlink()
    np.testing.assert_array_equal(np.load(real), NEW)
    assert list(folder.rglob(".bcast-*")) == []


@posix
def test_links_in_a_circle(run, folder):
    (folder / "out.npy").symlink_to("other")
    (folder / "other").symlink_to("out.npy")
    message = f"bcast: error: out.npy: {os.strerror(errno.ELOOP)}\n"
    assert run(*APPLY) == (2, "", message)
    assert files() == ["in.npy", "other", "out.npy"]


@posix
def test_a_hard_link_is_replaced_and_its_other_names_keep_the_old_file(run, folder):
    (folder / "other.npy").write_bytes(OLD)
    (folder / "out.npy").hardlink_to("other.npy")
    succeed(run, *APPLY[1:])
    assert (folder / "other.npy").read_bytes() == OLD
    np.testing.assert_array_equal(np.load("out.npy"), NEW)


@posix
def test_only_regular_files_are_replaced(run):
    os.mkfifo("out.npy")
    assert run(*APPLY) == (2, "", "bcast: error: out.npy: not a regular file\n")
    assert files() == ["in.npy", "out.npy"]


CHANGES = {
    "link": (lambda: Path("out.npy").symlink_to("in.npy"), "not a regular file"),
    "folder": (lambda: Path("out.npy").mkdir(), os.strerror(errno.EISDIR)),
}


@posix
@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_what_appeared_meanwhile_is_checked_too(run, monkeypatch, change, message):
    halfway(monkeypatch, change)
    assert run(*APPLY) == (2, "", f"bcast: error: out.npy: {message}\n")
    assert files() == ["in.npy", "out.npy"]


# Other users.


PLANTED = "another user's, in a folder where everybody can make files"
ME, OWNER, OTHER = 1000, 0, 1001
# An entry's owner, its folder's permissions, and whether the entry is refused to ME.
ENTRIES = {
    "own": (ME, 0o1777, False),
    "the_folders_owners": (OWNER, 0o1777, False),
    "another_users": (OTHER, 0o1777, True),
    "another_users_in_a_folder_for_a_group": (OTHER, 0o1775, False),
    "another_users_in_a_folder_without_sticky_bit": (OTHER, 0o777, False),
    "another_users_in_a_folder_that_all_may_write_but_not_list": (OTHER, 0o1773, True),
}


@posix
@pytest.mark.parametrize(("owner", "mode", "refused"), ENTRIES.values(), ids=ENTRIES)
def test_rule_of_planted_entries(monkeypatch, owner, mode, refused):
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    folder = SimpleNamespace(stat=lambda: SimpleNamespace(st_mode=0o40000 | mode, st_uid=OWNER))
    entry = SimpleNamespace(st_uid=owner)
    if refused:
        with pytest.raises(PermissionError, match=PLANTED):
            appearing._check_planted(entry, folder)
    else:
        appearing._check_planted(entry, folder)


def plant_link(folder):
    (folder / "victim").mkdir()
    os.chown(folder / "victim", NOBODY, NOBODY)
    (folder / "out.npy").symlink_to("victim/out.npy")


def plant_second_link(folder):
    plant_link(folder)
    (folder / "out.npy").rename(folder / "second.npy")
    (folder / "own").mkdir()
    (folder / "own" / "link.npy").symlink_to("../second.npy")


def plant_file(folder):
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(0o666)


# What another user plants, the name that the victim writes to, and the planted file.
PLANTS = {
    "link": (plant_link, "out.npy", "out.npy"),
    "second_link": (plant_second_link, "own/link.npy", "second.npy"),
    "file": (plant_file, "out.npy", "out.npy"),
}


@root
@pytest.mark.parametrize("victim", [NOBODY, 0], ids=["nobody", "root"])
@pytest.mark.parametrize(("plant", "name", "planted"), PLANTS.values(), ids=PLANTS)
def test_planted_entries_are_refused(shared, plant, name, planted, victim):
    plant(shared)
    os.chown(shared, SOMEBODY, SOMEBODY)
    os.chown(planted, SOMEBODY + 2, SOMEBODY + 2, follow_symlinks=False)
    before = sorted(shared.rglob("*"))
    refused = (2, "", f"bcast: error: {name}: {PLANTED}\n")
    assert as_user(victim, "apply", "in.npy", name, "--shape", "9,3") == refused
    assert sorted(shared.rglob("*")) == before
    if plant is not plant_file:  # a link by the folder's owner is followed
        os.chown(planted, SOMEBODY, SOMEBODY, follow_symlinks=False)
        assert as_user(victim, "apply", "in.npy", name, "--shape", "9,3")[0] == 0


@root
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.usefixtures("shared")
def test_nobody_else_opens_the_temporary(run, monkeypatch, exists):
    """Nor does the result become readable where the old file was not."""
    if exists:
        Path("out.npy").touch(mode=0o600)
    halfway(monkeypatch, lambda: seen.append(as_user(NOBODY, "open", *temporaries())))
    seen = []
    assert run(*APPLY)[0] == 0
    assert seen == [(0, "refused\n", "")]
    assert as_user(NOBODY, "open", "out.npy")[1] == ("refused\n" if exists else "opened\n")


@root
@pytest.mark.parametrize("path", ["out.npy", "."])
def test_no_right_to_write(shared, path):
    Path("out.npy").write_bytes(OLD)
    Path("out.npy").chmod(0o666)
    shared.chmod(0o777)
    Path(path).chmod(0o555)
    assert as_user(NOBODY, *APPLY) == (2, "", f"bcast: error: out.npy: {os.strerror(errno.EACCES)}\n")
    assert Path("out.npy").read_bytes() == OLD
    assert files() == ["in.npy", "out.npy"]


no_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")


@no_root
@pytest.mark.parametrize("path", ["out.npy", "."])
@pytest.mark.usefixtures("bad_files")
def test_no_right_of_ones_own_to_write(run, folder, path):
    mode = (folder / path).stat().st_mode
    (folder / path).chmod(0o555)
    try:
        check_refused(run, folder, ["apply", "in.npy", "out.npy", "--shape", "3"], "out.npy: Permission denied")
    finally:
        (folder / path).chmod(mode)


# Permissions.


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
@pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed_files", "no_unnamed_files"])
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002, 0o777])
def test_permissions_are_those_of_any_new_file(run, monkeypatch, umask, mask, unnamed):
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    umask(mask)
    Path("plain").touch()
    succeed(run, *APPLY[1:])
    assert Path("out.npy").stat().st_mode == Path("plain").stat().st_mode
    assert umask(0) == mask


def test_permissions_by_default_access_control_list(run, folder, umask):
    """A folder may have permissions for new files, which take the place of the umask."""
    set_access_list(folder, "default", [(1, 7, -1), (2, 7, NOBODY), (4, 5, -1), (16, 7, -1), (32, 4, -1)])
    umask(0o077)
    Path("plain").touch()
    succeed(run, *APPLY[1:])
    plain, out = [
        (os.getxattr(name, "system.posix_acl_access"), Path(name).stat().st_mode) for name in ("plain", "out.npy")
    ]
    assert out == plain
    assert out[1] & 0o777 == 0o664


def access_list(*entries):
    """Pack an access control list: tags, permissions and numbers of users and groups."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def set_access_list(path, name, entries):
    try:
        os.setxattr(path, f"system.posix_acl_{name}", access_list(*entries))
    except (AttributeError, OSError) as error:
        pytest.skip(f"no access control lists here: {error}")


def test_the_access_control_list_of_an_existing_file_stays(run, folder):
    """Its mask stands where the group's permissions are, which are none here."""
    entries = [(1, 6, -1), (2, 6, NOBODY), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    (folder / "out.npy").write_bytes(OLD)
    set_access_list("out.npy", "access", entries)
    succeed(run, *APPLY[1:])
    assert os.getxattr("out.npy", "system.posix_acl_access") == access_list(*entries)
    assert Path("out.npy").stat().st_mode & 0o777 == 0o660


def test_a_file_without_an_access_control_list_does_not_get_that_of_the_folder(run, folder):
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(0o640)
    set_access_list(folder, "default", [(1, 7, -1), (2, 6, NOBODY), (4, 5, -1), (16, 7, -1), (32, 0, -1)])
    succeed(run, *APPLY[1:])
    assert "system.posix_acl_access" not in os.listxattr("out.npy")
    assert Path("out.npy").stat().st_mode & 0o777 == 0o640


@posix
@pytest.mark.parametrize(("old", "new"), [(0o640, 0o640), (0o600, 0o600), (0o4755, 0o755)])
def test_permissions_of_an_existing_file_stay(run, folder, old, new):
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(old)
    succeed(run, *APPLY[1:])
    assert (folder / "out.npy").stat().st_mode & 0o7777 == new


# Permissions for three files of a group that the user does not belong to.
GROUPS = [(0o640, 0o600), (0o664, 0o644), (0o604, 0o600), (0o666, 0o666)]


@posix
@pytest.mark.parametrize(("old", "new"), GROUPS)
def test_another_group_gets_no_more_than_before(run, folder, monkeypatch, old, new):
    (folder / "out.npy").write_bytes(OLD)
    (folder / "out.npy").chmod(old)
    lstat = Path.lstat

    def of_another_group(path):
        entry = lstat(path)
        return os.stat_result([*entry[:5], entry.st_gid + 1, *entry[6:]]) if path.name == "out.npy" else entry

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(Path, "lstat", of_another_group)
    monkeypatch.setattr(os, "fchown", refuse)
    succeed(run, *APPLY[1:])
    assert (folder / "out.npy").stat().st_mode & 0o777 == new


@root
def test_root_keeps_the_owner(run):
    Path("out.npy").write_bytes(OLD)
    Path("out.npy").chmod(0o640)
    os.chown("out.npy", NOBODY, SOMEBODY)
    succeed(run, *APPLY[1:])
    entry = Path("out.npy").stat()
    assert (entry.st_uid, entry.st_gid, entry.st_mode & 0o777) == (NOBODY, SOMEBODY, 0o640)
