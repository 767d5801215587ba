import sys

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

# Some distributions' Python asks for -O2, under which GCC leaves the kernel's loops unvectorised.
OPTIMISE = [] if sys.platform == "win32" else ["-O3"]


def extension(source: str) -> Extension:
    return Extension(
        f"bcast.{source.partition('.')[0]}",
        [f"src/bcast/{source}"],
        include_dirs=[np.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
        extra_compile_args=OPTIMISE,
    )


EXTENSIONS = ["_alignment.py", "_kernel.pyx", "_memory.pyx", "_ops.py", "_numpy.py"]

setup(
    ext_modules=cythonize(
        [extension(name) for name in EXTENSIONS],
        compiler_directives={
            "annotation_typing": False,  # annotations are for readers and type checkers; they change no behaviour
            "autotestdict": False,  # doctests are collected from the docstrings themselves
            "embedsignature": False,
            "freethreading_compatible": True,
            "language_level": 3,
        },
        build_dir="build",
    ),
)
