/* Matrices copied on one target: transposed if items are contiguous in the data. `kernels.cpp` includes this file in
   the target's namespace, which defines the copy of a matrix of a few `Channels`. */

/* Transposes a square of 16 bytes a side in registers: it interleaves the upper half of the rows with the lower half,
   once for each power of two in the number of rows. With 4 items a side:

       a0 a1 a2 a3         a0 c0 a1 c1         a0 b0 c0 d0
       b0 b1 b2 b3    ->   a2 c2 a3 c3    ->   a1 b1 c1 d1
       c0 c1 c2 c3         b0 d0 b1 d1         a2 b2 c2 d2
       d0 d1 d2 d3         b2 d2 b3 d3         a3 b3 c3 d3

   A vector of two lanes has rows of two squares. */
template <int size>
BCAST_INLINE void transpose_square(const uint8_t *src, ptrdiff_t src_step, uint8_t *dst, ptrdiff_t dst_step)
{
    constexpr int side = 16 / size;
    Bytes row[side], half[side];

    for (int k = 0; k < side; k++) row[k] = load_lanes(src + k * src_step, side * src_step);

    for (int times = 1; times < side; times *= 2) {
        for (int k = 0; k < side / 2; k++) {
            half[2 * k] = interleaved_low<size>(row[k], row[k + side / 2]);
            half[2 * k + 1] = interleaved_high<size>(row[k], row[k + side / 2]);
        }
        for (int k = 0; k < side; k++) row[k] = half[k];
    }

    for (int k = 0; k < side; k++) store_register(dst + k * dst_step, row[k]);
}

/* The beginning of the next square; the last one is moved back to end with the matrix. */
BCAST_INLINE ptrdiff_t next_square(ptrdiff_t at, ptrdiff_t length, ptrdiff_t last)
{
    return at + length <= last ? at + length : last;
}

/* Squares by rows or by columns of the output: one pair of loops serves both. Clearer whole: separate loops would
   differ only in the roles of the indices. */
template <int size>
BCAST_INLINE void transpose(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    constexpr int side = 16 / size;
    constexpr ptrdiff_t rows = vector_bytes / size;     /* rows of a vector's squares */
    const ptrdiff_t m = matrix->m, n = matrix->n, n_step = matrix->n_step, dst_step = matrix->dst_step;
    /* Rows of the output that share few places of a cache are written one after the other. */
    const bool by_rows = (dst_step & (BCAST_PAGE / 2 - 1)) == 0 && (n_step & (BCAST_PAGE / 2 - 1));
    const ptrdiff_t outer = by_rows ? side : rows, outer_last = by_rows ? m - side : n - rows;
    const ptrdiff_t inner = by_rows ? rows : side, inner_last = by_rows ? n - rows : m - side;

    if (m < side || n < rows) {
        if constexpr (vector_bytes > BCAST_WINDOW_BYTES) narrower->copy_matrix(matrix, src, dst);
        else copy_items(matrix, src, dst);
        return;
    }

    for (ptrdiff_t p = 0;; p = next_square(p, outer, outer_last)) {
        for (ptrdiff_t q = 0;; q = next_square(q, inner, inner_last)) {
            const ptrdiff_t i = by_rows ? q : p, j = by_rows ? p : q;
            transpose_square<size>(src + i * n_step + j * size, n_step, dst + j * dst_step + i * size, dst_step);
            if (q == inner_last) break;
        }
        if (p == outer_last) break;
    }
}

/* Rows at a stride of a few items, which compilers shuffle as vectors if 16 bytes of the data have two items or more.
   Returns whether they have. */
template <int step, int size>
BCAST_INLINE bool copy_rows_at(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    if constexpr (step * size > 16) return false;
    for (ptrdiff_t j = 0; j < matrix->m; j++)
        copy_at_step<step, size>(matrix->n, src + j * matrix->m_step, dst + j * matrix->dst_step);
    return true;
}

/* Copy rows at a stride of a few items, if the matrix has such rows; return whether it has. */
template <int size>
BCAST_INLINE bool copy_rows_at_step(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    if (matrix->n * size < 2 * vector_bytes || matrix->n_step % size) return false;

    switch (matrix->n_step / size) {
    case -1: return copy_rows_at<-1, size>(matrix, src, dst);
    case 2: return copy_rows_at<2, size>(matrix, src, dst);
    case 3: return copy_rows_at<3, size>(matrix, src, dst);
    case 4: return copy_rows_at<4, size>(matrix, src, dst);
    default: return false;
    }
}

/* Copy a matrix of items that are smaller than a register. */
template <int size>
BCAST_INLINE void copy_matrix_of(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    if (matrix->m_step == size && matrix->m > 1) {
        if (!Channels::copy<size>(matrix, src, dst)) transpose<size>(matrix, src, dst);
    } else if (!copy_rows_at_step<size>(matrix, src, dst)) {
        copy_items(matrix, src, dst);
    }
}

static void copy_matrix(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    switch (matrix->size) {
    case 1: return copy_matrix_of<1>(matrix, src, dst);
    case 2: return copy_matrix_of<2>(matrix, src, dst);
    case 4: return copy_matrix_of<4>(matrix, src, dst);
    case 8: return copy_matrix_of<8>(matrix, src, dst);
    default: copy_items(matrix, src, dst);
    }
}
