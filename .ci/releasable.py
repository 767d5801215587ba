"""Check that what is in a folder may be published under a tag: `python .ci/releasable.py TAG FOLDER`."""

import re
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path


def metadata(path: Path) -> Message:
    """Return the metadata of an sdist or a wheel."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return BytesParser().parsebytes(archive.read(name))
    with tarfile.open(path) as archive:
        return BytesParser().parse(archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO"))


def reasons(tag: str, message: Message) -> list[str]:
    """Say why a file may not be published."""
    found = []
    if tag != f"v{message['Version']}":
        found.append(f"the tag {tag} expected version {tag.removeprefix('v')}, got {message['Version']}")
    if not message.get_all("Project-URL"):
        found.append("`repository` in pyproject.toml expected the address of the public repository, got none")
    found += [f"a relative link: {link}" for link in re.findall(r"\]\((?!https?:|#)([^)]+)\)", message.get_payload())]
    return found


if __name__ == "__main__":
    tag, folder = sys.argv[1:]
    files = sorted(Path(folder).iterdir())
    lines = [f"{path.name}: {reason}" for path in files for reason in reasons(tag, metadata(path))]
    sys.exit("\n".join(lines) if lines else None if files else f"{folder} expected files to publish, got none")
