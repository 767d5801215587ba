import os
import re
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Some distributions' Python asks for -O2, under which GCC leaves the kernel's loops unvectorised; and for debugging
# information, which takes as long to make as all the rest.
OPTIMISE = [] if sys.platform == "win32" else ["-O3", "-g0"]
PACKAGE = Path("src/bcast")


class BuildExtensions(build_ext):
    """Build extensions side by side."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()


def headers(source: Path) -> set[Path]:
    """Return the headers that a source, or its declarations, includes, and those that these include."""
    found, sources = set(), [source, source.with_suffix(".pxd")]
    while sources:
        path = sources.pop()
        text = path.read_text() if path.exists() else ""
        names = re.findall(r'^(?:cdef extern from|#include) "([\w./]+\.h)"', text, re.MULTILINE)
        for name in names:
            for folder in (path.parent, PACKAGE):
                header = Path(os.path.normpath(folder / name))
                if header.exists() and header not in found:
                    found.add(header)
                    sources.append(header)
    return found


def extension(source: str) -> Extension:
    return Extension(
        f"bcast.{source.partition('.')[0].replace('/', '.')}",
        [f"{PACKAGE}/{source}"],
        include_dirs=[np.get_include(), str(PACKAGE)],
        depends=sorted(map(str, headers(PACKAGE / source))),
        define_macros=[(name, "NPY_2_0_API_VERSION") for name in ("NPY_NO_DEPRECATED_API", "NPY_TARGET_VERSION")],
        extra_compile_args=OPTIMISE,
    )


SOURCES = [
    "_adjoint.pyx",  # first, as it takes longest to compile
    "_kernel.pyx",
    "_api/broadcast.py",
    "_api/converted.py",
    "_api/elementwise.py",
    "_api/numpy_calls.py",
    "_api/numpy_names.py",
    "_api/patching.py",
    "_api/tiling.py",
    "_api/unbroadcast.py",
    "_api/unrepeat.py",
    "_copy/counted.pyx",
    "_copy/plan.pyx",
    "_copy/strided.pyx",
    "_copy/walk.pyx",
    "_rules/alignment.py",
    "_rules/arguments.py",
    "_runtime/arrays.pyx",
    "_runtime/counts.pyx",
    "_runtime/cpu.pyx",
    "_runtime/extent.pyx",
    "_runtime/mapped.pyx",
    "_runtime/pages.pyx",
    "_runtime/result.pyx",
    "_runtime/stand_in.pyx",
    "_runtime/threads.pyx",
    "_sum/counted.pyx",
    "_sum/plan.pyx",
    "_sum/walk.pyx",
]

setup(
    ext_modules=cythonize(
        [extension(name) for name in SOURCES],
        compiler_directives={
            "allow_none_for_extension_args": False,  # where Python calls: what is typed is used unasked
            "annotation_typing": False,  # annotations are for readers and type checkers; they change no behaviour
            "autotestdict": False,  # doctests are collected from the docstrings themselves
            "embedsignature": False,
            "freethreading_compatible": True,
            "language_level": 3,
        },
        build_dir="build",
    ),
    cmdclass={"build_ext": BuildExtensions},
)
