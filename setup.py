import os
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Some distributions' Python asks for -O2, under which GCC leaves the kernel's loops unvectorised; and for debugging
# information, which takes as long to make as all the rest.
OPTIMISE = [] if sys.platform == "win32" else ["-O3", "-g0"]
HEADERS = [str(path) for path in Path("src/bcast").glob("*.h")]


class BuildExtensions(build_ext):
    """Build extensions side by side."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()


def extension(source: str) -> Extension:
    return Extension(
        f"bcast.{source.partition('.')[0]}",
        [f"src/bcast/{source}"],
        include_dirs=[np.get_include(), "src/bcast"],
        depends=HEADERS,
        define_macros=[(name, "NPY_2_0_API_VERSION") for name in ("NPY_NO_DEPRECATED_API", "NPY_TARGET_VERSION")],
        extra_compile_args=OPTIMISE,
    )


SOURCES = [
    "_adjoint.pyx",  # first, as it takes longest to compile
    "_alignment.py",
    "_extent.pyx",
    "_threads.pyx",
    "_plan.pyx",
    "_walk.pyx",
    "_strided.pyx",
    "_kernel.pyx",
    "_reduction.pyx",
    "_summing.pyx",
    "_pages.pyx",
    "_memory.pyx",
    "_ops.py",
    "_unbroadcast.py",
    "_numpy.py",
    "_tiling.py",
    "_elementwise.py",
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
