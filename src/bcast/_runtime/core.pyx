# cython: cdivision=True
"""What the cores run on: the target, threads, memory, and arrays for results.

Nothing here knows of alignments, modes or sums. A call that fails leaves NumPy's state, the threads and the idle memory
as they were.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.limits cimport INT_MAX
from libc.math cimport INFINITY, nextafter, nextafterf
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport llabs
from libc.string cimport memcpy, memmove, strcpy
from libc.time cimport time, time_t
from bcast._runtime cimport tuning
from bcast._runtime.tuning cimport BLOCK_MIN_BYTES, BLOCK_SPARE, MAP_MIN_BYTES, UNADVISED_MAX_BYTES

import operator
import os
import sys
from _thread import get_ident
from typing import NamedTuple, SupportsIndex

import numpy as np

from bcast._runtime.system import cpus, memory, read, setting

cnp.import_array()

cdef Py_ssize_t MAX_BYTES = sys.maxsize

# Numbers for modules in Python.
CONVERTED_BLOCK_BYTES = tuning.CONVERTED_BLOCK_BYTES
CONVERTED_FEW_TIMES = tuning.CONVERTED_FEW_TIMES
DECIDING_BYTES = tuning.DECIDING_BYTES
MEANS_BLOCK_BYTES = tuning.MEANS_BLOCK_BYTES
MEANS_ITEMS = tuning.MEANS_ITEMS

include "cpu.pxi"
include "hooks.pxi"
include "memory.pxi"
include "arrays.pxi"
include "threads.pxi"
