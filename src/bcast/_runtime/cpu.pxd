cdef int target_number      # of the target whose leaves all calls use
