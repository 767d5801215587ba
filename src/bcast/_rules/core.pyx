# cython: cdivision=True
"""The rules that are not plain Python: what says where the items of data go, and how often.

In: valid shapes, axes and numbers as users pass them. Out: an `Alignment` by the rules in alignment.pxi and the table
of modes in modes.pxi, and `Counts` by counts.pxi; or the error that says what was expected.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bcast._rules.arguments cimport MAX_SIZE, check_rank, integer, integers, is_countable, mode_of, shape_argument
from bcast._runtime.core cimport contiguous_overlap, count_threads, cut, run_shares
from bcast._runtime.tuning cimport RELEASING_BYTES, THREAD_SHARES, WAKING_TIMES

from collections import namedtuple
from operator import attrgetter

import numpy as np
from numpy.exceptions import AxisError

from bcast._rules.arguments import refuse_size, show
from bcast._runtime.core import counted

cnp.import_array()

include "alignment.pxi"
include "modes.pxi"
include "counts.pxi"
