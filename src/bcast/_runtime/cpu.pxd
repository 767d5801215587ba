cdef extern from "_runtime/cpu.h":
    enum:
        PLAIN "BCAST_PLAIN"
        TARGET_COUNT "BCAST_TARGET_COUNT"

cdef int target_number      # of the target whose leaves all calls use
