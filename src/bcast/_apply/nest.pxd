from bcast._runtime.arrays cimport MAX_AXES

cdef enum:
    MAX_OPERANDS = 4    # of `where`: three that are read, and the output, which is always the last one
    NEST_AXES = MAX_AXES + 1    # one more, so that a block always has two

# Loops as NumPy's: on items at steps of their own, which they may not have in common.
ctypedef int (*Loop)(
    void *context, char *const *data, const Py_ssize_t *dims, const Py_ssize_t *steps, void *auxdata
) noexcept nogil
ctypedef void (*Cast)(Py_ssize_t n, const void *src, void *dst) noexcept nogil

cdef enum Way:          # how the loop gets a block of an operand:
    DIRECT              # it reads or writes the items where they lie
    ONCE                # from a buffer that is the same for all blocks
    EACH                # from a buffer that is filled for each block, or through one, if it is the output

cdef struct Operand:
    char *data
    Py_ssize_t[NEST_AXES] strides   # 0 where the operand is repeated
    Py_ssize_t size         # bytes of an item in memory,
    Py_ssize_t loop_size    # and of one that the loop takes
    Cast cast               # from the one to the other, or back for the output; NULL if they are the same
    int swapped             # bytes of the units that lie in memory in the other order; 0 if none do
    bint aligned            # whether C may read the items where they lie
    # What the plan says:
    Way way
    bint dense              # the items of a block lie side by side in memory, in order,
    bint expanded           # and are repeated within a block
    Py_ssize_t step         # the loop's, between items,
    Py_ssize_t row_step     # and between rows, where it lies
    Py_ssize_t buffer       # where its buffers begin: of items as they are,
    Py_ssize_t cast_buffer  # converted,
    Py_ssize_t full_buffer  # and repeated
    Py_ssize_t plan         # and the plan of the copies that repeat them

cdef struct Nest:
    Loop loop
    void *context
    void *auxdata
    bint side_by_side       # the loop takes only items side by side, or one for all
    int n                   # operands
    int rank
    Py_ssize_t[NEST_AXES] shape     # outermost first
    Operand[MAX_OPERANDS] operands
    # What the plan says: a block has `part` of the axis `cut`, and all axes within whole, in one call of the loop; or
    # if `rows`, it has up to `row` of the last axis in one call for each index of the axis before.
    bint rows
    int cut
    Py_ssize_t part, parts  # of the axis `cut`, and how many blocks there are along it
    Py_ssize_t row, row_parts
    Py_ssize_t inner        # items of a block for each index of `cut`
    Py_ssize_t blocks
    Py_ssize_t once_bytes   # of the buffers that all threads share,
    Py_ssize_t own_bytes    # and of those that each thread has

cdef bint sort_axes(const Nest *nest, int n, int *order) noexcept
cdef void merge_axes(Nest *nest, const int *order) noexcept
cdef bint is_small(const Nest *nest) noexcept
cdef void run_small(const Nest *nest) noexcept
cdef void plan_blocks(Nest *nest) noexcept
cdef int plan_copies(const Nest *nest, char *once, char *own, int threads) except -1
cdef int run_blocks(const Nest *nest, Py_ssize_t begin, Py_ssize_t end, const char *once, char *own) noexcept nogil
