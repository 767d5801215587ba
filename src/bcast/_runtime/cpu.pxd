cdef extern from "_runtime/cpu.h":
    enum:
        LINE "BCAST_LINE"
        PAGE "BCAST_PAGE"
        L1 "BCAST_L1"

cdef int target_number      # of the target whose leaves all calls use
