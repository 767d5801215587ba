"""Atomic writes. In: a file's name. Out: a temporary file next to it, which takes the name when it is complete."""

import errno
import os
import stat
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import NamedTemporaryFile


@contextmanager
def atomic_write(target: str, clobber: bool = True) -> Iterator[Path]:
    """Yield a private temporary, which in the end replaces `target`: no folder, and no file unless `clobber`."""
    try:
        if os.path.split(target)[1] in ("", os.curdir, os.pardir):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        final = _final(Path(target), clobber)
        with NamedTemporaryFile(prefix=".bcast-", suffix=".tmp", dir=final.parent, delete=False) as file:
            temporary = Path(file.name)
        try:
            yield temporary
            _set_permissions(temporary, final)
            temporary.replace(_final(final, clobber))
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # they may hold maps; Windows removes no mapped file
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        error.filename = target
        raise


def _final(path: Path, clobber: bool) -> Path:
    """Return what is to be replaced, or the free name; refuse what must stay."""
    if not clobber and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    try:
        with FileIO(path, "r+") as file:  # so that the system's rules for permissions and for others' links hold
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
    except FileNotFoundError:
        return path
    return path.resolve()


def _set_permissions(temporary: Path, final: Path) -> None:
    """Copy the permissions of the replaced file to the temporary one, and if allowed its owner and group."""
    if sys.platform == "win32":
        return
    umask = os.umask(0o077)
    os.umask(umask)
    mode = 0o666 & ~umask
    if final.exists():
        old = final.stat()
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
        mode = old.st_mode & (0o777 if temporary.stat().st_gid == old.st_gid else 0o700)
    temporary.chmod(temporary.stat().st_mode & stat.S_ISGID | mode)
