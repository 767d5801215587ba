"""Compile the extensions, unless that was done, and write the metadata that need the repository's address."""

import hashlib
import multiprocessing
import os
import re
import shutil
import sys
import sysconfig
import tomllib
from pathlib import Path

import Cython
import numpy as np
from Cython.Build import cythonize
from Cython.Build.Dependencies import create_dependency_tree
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

BITS = sys.maxsize.bit_length() + 1
if sys.byteorder != "little" or BITS != 64:
    sys.exit(f"bcast expected a little-endian 64-bit machine to build for, got a {sys.byteorder}-endian {BITS}-bit one")

PACKAGE = Path("src/bcast")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MADE = Path(f"build/c{SUFFIX.rpartition('.')[0]}")  # sources in C and extensions, for each Python and platform
# Some distributions' Python asks for -O2, under which GCC leaves the kernel's loops unvectorised; and for debugging
# information, which takes as long to make as all the rest.
OPTIMISE = ["-O3", "-g0", "-fno-math-errno"]
# Loops of few instructions take up to a tenth longer by where they happen to lie, and so do small copies by where their
# face does. Small calls take longer where all modules are aligned, and fill more pages; sums of short runs take a
# quarter longer where loops are.
ALIGN = ["-falign-functions=64", "-falign-loops=32"]
# Modules that check arguments and call Python take as few instructions by -O1, which compiles them in half the time;
# those of them that are not named below take more.
BRIEF = ["-O1"]
EXACT = ["-ffp-contract=off"]  # a product is rounded before it is added
OWN_OPTIONS = {
    "_reduction.pyx": ["-O2"],
    "_reduce/search.pyx": ["-O2"],
    "_reduce/vectors.pyx": ["-O2"],
    "_api/copies.py": ["-falign-functions=64"],
    "_api/converted.py": BRIEF,
    "_api/patching.pyx": BRIEF,
    "_apply/ufuncs.pyx": EXACT,
    "_copy/plan.pyx": ALIGN,
    "_copy/run.pyx": ALIGN,
    "_kernel.pyx": [*ALIGN, *BRIEF],
    "_rules/arguments.py": ["-O2"],
    "_reduce/run.pyx": ["-falign-functions=32"],
}
DIRECTIVES = {
    "allow_none_for_extension_args": False,  # where Python calls: what is typed is used unasked
    "annotation_typing": False,  # annotations are for readers and type checkers; they change no behaviour
    "autotestdict": False,  # doctests are collected from the docstrings themselves
    "embedsignature": False,
    "emit_code_comments": False,
    "freethreading_compatible": True,
    "language_level": 3,
}
# Functions that users do not see take 2,000 lines of C less in each module without attributes; tests read signatures.
DIRECTIVES_OF_PRIVATE = {"binding": False, "embedsignature": True, "embedsignature.format": "clinic"}
PUBLIC = {
    "_api/adjoints.py",
    "_api/copies.py",
    "_api/elementwise.py",
    "_api/patching.pyx",
    "_api/reductions.py",
    "_runtime/core.pyx",
}
SOURCES = [
    "_reduce/run.pyx",  # first, as these two take longest to compile
    "_apply/ufuncs.pyx",
    "_copy/plan.pyx",
    "_copy/run.pyx",
    "_reduction.pyx",
    "_kernel.pyx",
    "_elementwise.pyx",
    "_apply/operands.pyx",
    "_apply/plan.pyx",
    "_apply/run.pyx",
    "_api/adjoints.py",
    "_api/copies.py",
    "_api/converted.py",
    "_api/elementwise.py",
    "_api/patching.pyx",
    "_api/reductions.py",
    "_nest/core.pyx",
    "_reduce/counted.pyx",
    "_reduce/plan.pyx",
    "_reduce/search.pyx",
    "_reduce/vectors.pyx",
    "_rules/alignment.pyx",
    "_rules/arguments.py",
    "_rules/counts.pyx",
    "_runtime/arrays.pyx",
    "_runtime/core.pyx",
]


# Kernels in C++17, which call nothing of its library: they are linked as C is.
KERNELS = {
    "_apply/ufuncs.pyx": ["_apply/simd/kernels.cpp"],
    "_copy/plan.pyx": ["_copy/simd/kernels.cpp"],
    "_reduce/run.pyx": ["_reduce/simd/kernels.cpp"],
}


def own_options(source: str) -> list[str]:
    if sys.platform == "win32":
        return ["/std:c++17"] if source in KERNELS else []
    return OWN_OPTIONS.get(source, [])


def extension(source: str, path: str, kernels: bool = False) -> Extension:
    return Extension(
        f"bcast.{source.partition('.')[0].replace('/', '.')}",
        [path] + [str(PACKAGE / name) for name in KERNELS.get(source, []) if kernels],
        language="c",
        include_dirs=[np.get_include(), str(PACKAGE)],
        define_macros=[(name, "NPY_2_0_API_VERSION") for name in ("NPY_NO_DEPRECATED_API", "NPY_TARGET_VERSION")],
        extra_compile_args=OPTIMISE + own_options(source),
    )


def read_for(source: str) -> set[Path]:
    """Return the files of the package that are read to compile a source: what it cimports and includes, to the end."""
    pending = {PACKAGE / name for name in [source, *KERNELS.get(source, [])]}
    pending |= {*map(Path, create_dependency_tree().all_dependencies(str(PACKAGE / source)))}
    found = set()
    while pending:
        path = pending.pop()
        if path in found or PACKAGE not in path.parents:  # NumPy's and Python's files are told by their versions
            continue
        found.add(path)
        names = re.findall(r'^(?:cdef extern from|#?\s*include) "([\w./]+)"', path.read_text("utf-8"), re.MULTILINE)
        paths = [Path(os.path.normpath(folder / name)) for name in names for folder in (path.parent, PACKAGE)]
        pending.update(path for path in paths if path.exists())
    return found


def key_of(source: str) -> str:
    """Return what the compiled extension follows from. Times say nothing: environments of their own are always new."""
    variables = ["CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED", "ARCHFLAGS", "CL"]
    variables.append("MACOSX_DEPLOYMENT_TARGET")
    settings = [sys.version, SUFFIX, Cython.__version__, np.__version__]
    settings += [f"{get(name)}" for name in variables for get in (os.environ.get, sysconfig.get_config_var)]
    digest = hashlib.sha256(repr(settings).encode() + Path("setup.py").read_bytes())
    for path in sorted(read_for(source)):
        digest.update(f"\n{path.as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


class BuildExtensions(build_ext):
    """Compile the extensions that are not what their keys say, side by side, and tell of each that is done."""

    def finalize_options(self):
        super().finalize_options()
        self.force = True  # the keys decide
        self.parallel = self.parallel or os.cpu_count()
        self.done = 0

    def build_extensions(self):
        self.keys = {each.name: key_of(source) for each, source in zip(self.extensions, SOURCES, strict=True)}
        pairs = zip(self.extensions, SOURCES, strict=True)
        stale = [(each, source) for each, source in pairs if not self.is_made(each, Path(each.sources[0]))]
        for is_public in False, True:
            cythonize(
                [extension(name, str(PACKAGE / name)) for _, name in stale if (name in PUBLIC) == is_public],
                build_dir=str(MADE),
                compiler_directives=DIRECTIVES if is_public else DIRECTIVES | DIRECTIVES_OF_PRIVATE,
                force=True,
                nthreads=os.cpu_count() if multiprocessing.get_start_method() == "fork" else 0,
            )
        for header in MADE.rglob("*.h"):  # Cython copies those that it sees, without those that they include
            header.unlink()
        for each, _ in stale:
            self.note(each, Path(each.sources[0]))
        if self.compiler.compiler_type == "unix":
            self.compiler.compiler_so_cxx = [*self.compiler.compiler_so_cxx, "-std=c++17"]
        super().build_extensions()

    def build_extension(self, ext):
        path = Path(self.get_ext_fullpath(ext.name))
        kept = MADE / self.get_ext_filename(ext.name)
        if self.is_made(ext, kept):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # a process may have loaded it
            shutil.copy2(kept, path)
        else:
            super().build_extension(ext)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, kept)
            self.note(ext, kept)
        self.done += 1
        print(f"{self.done} of {len(self.extensions)} extensions: {ext.name}", flush=True)

    def is_made(self, ext, path: Path) -> bool:
        """Tell whether a file in `MADE` was made for the extension's key, and is as it was then."""
        stamp = path.with_name(f"{path.name}.key")
        return path.exists() and stamp.exists() and stamp.read_text("utf-8") == self.told(ext, path)

    def note(self, ext, path: Path):
        path.with_name(f"{path.name}.key").write_text(self.told(ext, path), "utf-8")

    def told(self, ext, path: Path) -> str:
        return f"{self.keys[ext.name]} {path.stat().st_mtime_ns}\n"


def repository() -> str:
    """Return the address of the public repository: pyproject.toml has it; the environment may say another."""
    address = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["bcast"]["repository"]
    return os.environ.get("BCAST_REPOSITORY", address).rstrip("/")


def readme(address: str) -> str:
    """Return README as the package's page has it: its relative links lead to the files of this version."""
    version = re.search(r'^__version__ = "(.*)"$', (PACKAGE / "__init__.py").read_text("utf-8"), re.MULTILINE)[1]

    def absolute(link):
        image, text, target = link.groups()
        kind = "raw" if image else "tree" if Path(target).is_dir() else "blob"
        return f"{image}[{text}]({address}/{kind}/v{version}/{target})"

    text = Path("README.md").read_text("utf-8")
    # A relative link: neither an address nor a place on the page.
    return re.sub(r"(!?)\[([^]]*)\]\((?!\w+:|#)([^)]+)\)", absolute, text) if address else text


def addresses(address: str) -> dict[str, str]:
    pages = {
        "Source": "",
        "Documentation": "/tree/main/docs",
        "Changelog": "/blob/main/CHANGELOG.md",
        "Issues": "/issues",
    }
    return {name: address + page for name, page in pages.items()} if address else {}


setup(
    ext_modules=[extension(name, str(MADE / PACKAGE / Path(name).with_suffix(".c")), True) for name in SOURCES],
    cmdclass={"build_ext": BuildExtensions},
    long_description=readme(repository()),
    long_description_content_type="text/markdown",
    project_urls=addresses(repository()),
)
