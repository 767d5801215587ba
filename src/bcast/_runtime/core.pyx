# cython: cdivision=True
"""What the cores run on.

In: sizes, shapes and dtypes, and what the environment says. Out: the target, threads, memory and arrays for results.
cpu.pxi detects the target; memory.pxi keeps pages for large results; arrays.pxi makes these, and asks NumPy's C API for
what modules of plain Python must know of arrays; threads.pxi runs shares of work on threads;
hooks.pxi has the hooks of tests.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.limits cimport INT_MAX
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memmove, strcpy
from libc.time cimport time, time_t

import operator
import os
import sys
from _thread import get_ident
from typing import NamedTuple, SupportsIndex

import numpy as np

from bcast._runtime.system import cpus, memory, setting

cnp.import_array()

cdef Py_ssize_t MAX_BYTES = sys.maxsize

include "cpu.pxi"
include "hooks.pxi"
include "memory.pxi"
include "arrays.pxi"
include "threads.pxi"
