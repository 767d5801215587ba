"""The permissions of a new file or folder: those of what it replaces, or those of any new one."""

import errno
import os
import stat
import sys
from contextlib import suppress
from io import FileIO
from pathlib import Path

__all__ = ["new_permissions", "set_permissions"]

ACCESS_LIST = "system.posix_acl_access"  # of Linux


def set_permissions(file: FileIO, path: Path, old: os.stat_result | None) -> None:
    """Give the file the permissions of the file that it replaces, or those of a new file."""
    if sys.platform == "win32":
        return
    mode = new_permissions(path.parent) if old is None else _take_access_list(file, path, _take_owner(file, old))
    with suppress(OSError):  # from a file system without permissions
        os.fchmod(file.fileno(), mode)


def _take_owner(file: FileIO, old: os.stat_result) -> int:
    """Give the file the `old` one's owner and group, as far as allowed; return permissions that admit nobody else."""
    mode = old.st_mode & 0o777
    new = os.fstat(file.fileno())
    with suppress(OSError):  # only root may
        if new.st_uid != old.st_uid:
            os.fchown(file.fileno(), old.st_uid, -1)
    try:
        if new.st_gid != old.st_gid:
            os.fchown(file.fileno(), -1, old.st_gid)
    except OSError:  # the user is not in that group: give the file's group only what both the old group and others had
        both = mode >> 3 & mode & 0o007
        mode = mode & 0o700 | both << 3 | both
    return mode


def _take_access_list(file: FileIO, path: Path, mode: int) -> int:
    """Give the file the access list of the file at `path`, or none; return permissions that admit nobody else.

    Where there is a list, the permissions of the group are a mask over all of it, not those of the group.
    """
    if not hasattr(os, "getxattr"):
        return mode
    try:
        entries = os.getxattr(path, ACCESS_LIST)
    except OSError:  # it has none: what the folder's default has given the new file goes
        try:
            os.removexattr(file.fileno(), ACCESS_LIST)
        except OSError as error:
            return mode if error.errno in (errno.ENODATA, errno.ENOTSUP) else mode & 0o707
        return mode
    try:
        os.setxattr(file.fileno(), ACCESS_LIST, entries)
    except OSError:
        return mode & 0o707
    return mode


def new_permissions(folder: Path, most: int = 0o666) -> int:
    """Return the permissions of new files: those that the umask leaves of `most`, or those that the folder sets."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # from a file system without unnamed files
            descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, most)
            try:
                return stat.S_IMODE(os.fstat(descriptor).st_mode)
            finally:
                os.close(descriptor)
    umask = os.umask(0o077)
    os.umask(umask)
    return most & ~umask
