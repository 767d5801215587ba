import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

# Some distributions' Python asks for -O2, under which GCC leaves the kernel's loops unvectorised; and for debugging
# information, which takes as long to make as all the rest.
OPTIMISE = [] if sys.platform == "win32" else ["-O3", "-g0"]
HEADERS = [str(path) for path in Path("src/bcast").glob("*.h")]
WITH_OPENMP = {"bcast._adjoint", "bcast._kernel", "bcast._strided", "bcast._threads"}
PROBE = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"


class BuildExtensions(build_ext):
    """Build with OpenMP where the compiler has it; BCAST_OPENMP=0 asks for a build without, 1 for none but with."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        flags = (["/openmp"], []) if self.compiler.compiler_type == "msvc" else (["-fopenmp"], ["-fopenmp"])
        asked = os.environ.get("BCAST_OPENMP", "")
        found = asked != "0" and self.links(*flags)
        if asked == "1" and not found:
            raise CompileError(f"BCAST_OPENMP=1, but the compiler links no program with {flags[0][0]}")
        print("OpenMP: yes" if found else "OpenMP: no, bcast will work on one thread")
        for extension in self.extensions:
            if found and extension.name in WITH_OPENMP:
                extension.extra_compile_args = extension.extra_compile_args + flags[0]
                extension.extra_link_args = extension.extra_link_args + flags[1]
        super().build_extensions()

    def links(self, compile_args, link_args):
        """Tell whether a program of OpenMP compiles and links; it is not run, it may be one for another machine."""
        with tempfile.TemporaryDirectory() as scratch, silence():
            source = Path(scratch, "probe.c")
            source.write_text(PROBE)
            try:
                objects = self.compiler.compile([str(source)], output_dir=scratch, extra_postargs=compile_args)
                self.compiler.link_executable(objects, "probe", output_dir=scratch, extra_postargs=link_args)
            except (CompileError, LinkError):
                return False
        return True


@contextmanager
def silence():
    """Keep what a compiler says of the probe out of the log, where it would look like a failure of the build."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        sys.stdout.flush()
        for stream, copy in enumerate(kept, 1):
            os.dup2(copy, stream)
        for descriptor in (nowhere, *kept):
            os.close(descriptor)


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
