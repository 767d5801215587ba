/* Matrices copied on one TARGET, by transposition where items lie side by side in the data. `transpose.h` includes this
   file for each, and defines

       TARGET, ON_TARGET       its name, and how functions are compiled for it
       Vector                  a vector, which has 16 bytes of one row or of two
       LOAD, STORE             rows in memory: at a place, and `second` bytes on for a second lane
       SMALLER                 what takes a matrix that has no square
       COPY_CHANNELS           what takes one of a few channels, and tells if it is

   and `low` and `high`, which interleave the lower and the upper halves of two vectors, item by item. */

#define FN(name) BCAST_JOIN(name, TARGET)

/* A square of 16 bytes a side is transposed in registers: to interleave the upper half of the rows with the lower one,
   as often as halves can be halved, is to transpose. Of 4 items a side:

       a0 a1 a2 a3         a0 c0 a1 c1         a0 b0 c0 d0
       b0 b1 b2 b3    ->   a2 c2 a3 c3    ->   a1 b1 c1 d1
       c0 c1 c2 c3         b0 d0 b1 d1         a2 b2 c2 d2
       d0 d1 d2 d3         b2 d2 b3 d3         a3 b3 c3 d3

   The last squares are laid back to end with the matrix. */
ON_TARGET BCAST_INLINE void FN(transpose_squares)(
    const int size, const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    const int side = 16 / size;
    const ptrdiff_t m = matrix->m, n = matrix->n, rows = (ptrdiff_t) sizeof(Vector) / size;
    const ptrdiff_t n_step = matrix->n_step, dst_step = matrix->dst_step;
    /* Rows of the output that share few places of a cache are written one after the other. */
    const int by_rows = (dst_step & (BCAST_PAGE / 2 - 1)) == 0 && n_step & (BCAST_PAGE / 2 - 1);
    const ptrdiff_t outer = by_rows ? side : rows, outer_last = by_rows ? m - side : n - rows;
    const ptrdiff_t inner = by_rows ? rows : side, inner_last = by_rows ? n - rows : m - side;
    if (m < side || n < rows) {
        SMALLER(matrix, src, dst);
        return;
    }
    for (ptrdiff_t p = 0;; p = p + outer <= outer_last ? p + outer : outer_last) {
        for (ptrdiff_t q = 0;; q = q + inner <= inner_last ? q + inner : inner_last) {
            const ptrdiff_t i = by_rows ? q : p, j = by_rows ? p : q;
            const uint8_t *from = src + i * n_step + j * size;
            uint8_t *to = dst + j * dst_step + i * size;
            Vector row[16], half[16];
            for (int k = 0; k < side; k++) row[k] = LOAD(from + k * n_step, side * n_step);
            for (int times = 1; times < side; times *= 2) {
                for (int k = 0; k < side / 2; k++) {
                    half[2 * k] = FN(low)(size, row[k], row[k + side / 2]);
                    half[2 * k + 1] = FN(high)(size, row[k], row[k + side / 2]);
                }
                for (int k = 0; k < side; k++) row[k] = half[k];
            }
            for (int k = 0; k < side; k++) STORE(to + k * dst_step, row[k]);
            if (q == inner_last) break;
        }
        if (p == outer_last) break;
    }
}

/* Rows at a step of few items: vectors of them are shuffled, as long as 16 bytes of the data have two items or more.
   Tells whether it is that. */
#define AT_STEP(step) case step: \
    if (step * size > 16) return 0; \
    for (ptrdiff_t j = 0; j < matrix->m; j++) \
        bcast_copy_at_step(step, size, matrix->n, src + j * matrix->m_step, dst + j * matrix->dst_step); \
    return 1;
ON_TARGET BCAST_INLINE int FN(copy_rows_at_step)(
    const int size, const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    if (matrix->n * size < 2 * (ptrdiff_t) sizeof(Vector) || matrix->n_step % size) return 0;
    switch (matrix->n_step / size) { AT_STEP(-1) AT_STEP(2) AT_STEP(3) AT_STEP(4) }
    return 0;
}
#undef AT_STEP

#define CHANNELS_OR_SQUARES(size) case size: \
    if (!COPY_CHANNELS(size, matrix, src, dst)) FN(transpose_squares)(size, matrix, src, dst); \
    return;
#define ROWS_AT_STEP(size) case size: if (FN(copy_rows_at_step)(size, matrix, src, dst)) return; break;
ON_TARGET static void FN(copy_matrix)(const bcast_matrix *matrix, const uint8_t *src, uint8_t *dst)
{
    if (matrix->m_step == matrix->size && matrix->m > 1)
        switch (matrix->size) {
            CHANNELS_OR_SQUARES(1) CHANNELS_OR_SQUARES(2) CHANNELS_OR_SQUARES(4) CHANNELS_OR_SQUARES(8)
        }
    else
        switch (matrix->size) { ROWS_AT_STEP(1) ROWS_AT_STEP(2) ROWS_AT_STEP(4) ROWS_AT_STEP(8) }
    bcast_strided_copy(matrix, src, dst);
}
#undef CHANNELS_OR_SQUARES
#undef ROWS_AT_STEP

#undef FN
#undef TARGET
#undef ON_TARGET
#undef Vector
#undef LOAD
#undef STORE
#undef SMALLER
#undef COPY_CHANNELS
