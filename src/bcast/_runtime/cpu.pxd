cdef extern from "_runtime/cpu.h":
    enum:
        LINE "BCAST_LINE"
        PAGE "BCAST_PAGE"
        L1 "BCAST_L1"
        TARGET_COUNT "BCAST_TARGET_COUNT"
    const char **target_names "bcast_target_names"
    bint has_target "bcast_has"(int target)

cdef int target_number      # of the target whose leaves all calls use
