/* Repetition of items and blocks, on one target: all remaining kernels of `kernels.h` except `copy_matrix`.
   `kernels.cpp` includes this file in the target's namespace, after `shuffle.inc.h`.

   The last vector of a row, a run or an item is moved back to end with it, and writes some bytes again. */

/* The number of vectors for some bytes. */
BCAST_INLINE ptrdiff_t vectors_of(ptrdiff_t size) { return (size + vector_bytes - 1) / vector_bytes; }

/* Bytes from a place to the next multiple of a vector: from there on, stores cross no cache line. */
BCAST_INLINE ptrdiff_t bytes_to_whole_vectors(const uint8_t *at)
{
    return static_cast<ptrdiff_t>(-reinterpret_cast<uintptr_t>(at) & (vector_bytes - 1));
}

/* ---- Short items, several to a vector ---- */

/* Runs of a constant number of vectors. */
template <int vectors>
BCAST_INLINE void fill_short(const bcast_rows *rows, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t size = rows->size, run = rows->times * size;
    const Bytes numbers = load_register(fill_numbers.of[size]);

    for (ptrdiff_t n = rows->count; n > 0; n--, src += size, dst += run) {
        const Bytes items = pick(src, numbers);
        for (int i = 0; i < vectors - 1; i++) store_register(dst + i * vector_bytes, items);
        store_register(dst + run - vector_bytes, items);
    }
}

/* Runs of any length, by stores that cross no cache line if they may begin at whole vectors: items must not be cut. */
BCAST_INLINE void fill_long(const bcast_rows *rows, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t size = rows->size, run = rows->times * size;
    const Bytes numbers = load_register(fill_numbers.of[size]);

    for (ptrdiff_t n = rows->count; n > 0; n--, src += size, dst += run) {
        const Bytes items = pick(src, numbers);
        ptrdiff_t i = bytes_to_whole_vectors(dst);
        if (i & (size - 1)) i = 0;
        else store_register(dst, items);

        for (; i <= run - 4 * vector_bytes; i += 4 * vector_bytes)
            for (int k = 0; k < 4; k++) store_register(dst + i + k * vector_bytes, items);
        for (; i < run - vector_bytes; i += vector_bytes) store_register(dst + i, items);
        store_register(dst + run - vector_bytes, items);
    }
}

static void fill(const bcast_rows *rows, const uint8_t *src, uint8_t *dst)
{
    switch (vectors_of(rows->times * rows->size)) {
    case 1: return fill_short<1>(rows, src, dst);
    case 2: return fill_short<2>(rows, src, dst);
    case 3: return fill_short<3>(rows, src, dst);
    case 4: return fill_short<4>(rows, src, dst);
    default: fill_long(rows, src, dst);
    }
}

/* A constant number of vectors of each item is stored without a branch, which could not be predicted. */
template <int vectors>
BCAST_INLINE void repeat_counted_by(
    const bcast_rows *items, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t n = items->count, size = items->size;
    const ptrdiff_t step = vector_bytes / size * size, stored = vectors * step;
    const Bytes numbers = load_register(fill_numbers.of[size]);

    for (ptrdiff_t i = 0; i < n; i++, src += size) {
        const Bytes vector = pick(src, numbers);
        const ptrdiff_t run = counts[i] * size;

        for (int j = 0; j < vectors; j++) store_register(dst + j * step, vector);
        if (run > stored)
            for (ptrdiff_t at = stored; at < run; at += step) store_register(dst + at, vector);
        dst += run;
    }
}

static void repeat_counted(const bcast_rows *items, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    switch (items->times * BCAST_WINDOW_BYTES / vector_bytes) {
    case 0:     /* half a vector: fewer stores cross lines */
        if constexpr (vector_bytes > BCAST_WINDOW_BYTES) narrower->repeat_counted(items, counts, src, dst);
        return;
    case 1: return repeat_counted_by<1>(items, counts, src, dst);
    case 2: return repeat_counted_by<2>(items, counts, src, dst);
    case 4: return repeat_counted_by<4>(items, counts, src, dst);
    default: repeat_counted_by<8>(items, counts, src, dst);
    }
}

/* ---- Items that are kept in registers ---- */

/* Store an item of a constant number of vectors. */
template <int vectors>
BCAST_INLINE void store_item(uint8_t *dst, const Bytes (&part)[vectors], ptrdiff_t last)
{
    for (int k = 0; k < vectors; k++) store_register(dst + (k < vectors - 1 ? k * vector_bytes : last), part[k]);
}

/* Items of a constant number of vectors, each to `times` places `step` bytes apart, or more if there are counts; the
   next item's places begin at `next`, or after the counted ones. The loop with a constant `times` can be predicted. */
template <int vectors>
BCAST_INLINE void copy_rows(
    const bcast_rows *rows, const int64_t *counts, ptrdiff_t step, ptrdiff_t next, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t n = rows->count, size = rows->size, times = rows->times;
    const ptrdiff_t last = size - vector_bytes;     /* offset of the last vector */

    for (ptrdiff_t i = 0; i < n; i++, src += size) {
        const ptrdiff_t count = counts ? counts[i] : times;
        Bytes part[vectors];
        uint8_t *to = dst;

        for (int k = 0; k < vectors; k++) part[k] = load_register(src + (k < vectors - 1 ? k * vector_bytes : last));
        for (ptrdiff_t j = 0; j < times; j++, to += step) store_item(to, part, last);
        for (ptrdiff_t j = times; j < count; j++, to += step) store_item(to, part, last);
        dst += counts ? count * step : next;
    }
}

template <int vectors>
BCAST_INLINE void repeat_rows_of(const bcast_rows *rows, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t size = rows->size;

    if (counts) copy_rows<vectors>(rows, counts, size, 0, src, dst);
    else copy_rows<vectors>(rows, nullptr, size, rows->times * size, src, dst);
}

static void repeat_rows(const bcast_rows *rows, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    if constexpr (vector_bytes > BCAST_WINDOW_BYTES)
        if (rows->size < vector_bytes) return narrower->repeat_rows(rows, counts, src, dst);

    switch (vectors_of(rows->size)) {
    case 1: return repeat_rows_of<1>(rows, counts, src, dst);
    case 2: return repeat_rows_of<2>(rows, counts, src, dst);
    case 3: return repeat_rows_of<3>(rows, counts, src, dst);
    case 4: return repeat_rows_of<4>(rows, counts, src, dst);
    case 5: return repeat_rows_of<5>(rows, counts, src, dst);
    case 6: return repeat_rows_of<6>(rows, counts, src, dst);
    case 7: return repeat_rows_of<7>(rows, counts, src, dst);
    case 8: return repeat_rows_of<8>(rows, counts, src, dst);
    }
}

static_assert(BCAST_ITEM_VECTORS == 8, "the longest item of `repeat_rows`");

/* ---- Long items and blocks ---- */

static void copy_to_many(ptrdiff_t times, ptrdiff_t step, ptrdiff_t size, const uint8_t *src, uint8_t *dst)
{
    constexpr ptrdiff_t piece = BCAST_ITEM_VECTORS * vector_bytes;
    const ptrdiff_t rest = size % piece;

    for (ptrdiff_t n; times > 0; times -= n, dst += n * step) {
        n = times < 4 ? times : 4;      /* the places and the data may all compete for one set of a cache, of 8 ways */
        const bcast_rows pieces = {size / piece, n, piece}, last = {1, n, piece};

        copy_rows<BCAST_ITEM_VECTORS>(&pieces, nullptr, step, piece, src, dst);
        if (rest) copy_rows<BCAST_ITEM_VECTORS>(&last, nullptr, step, piece, src + size - piece, dst + size - piece);
    }
}

static void tile(ptrdiff_t block, ptrdiff_t size, uint8_t *dst)
{
    constexpr ptrdiff_t group = 4 * vector_bytes;
    const ptrdiff_t pass = block - block % group;       /* bytes of one copy */
    const uint8_t *from = dst;
    uint8_t *to = dst + block;
    const ptrdiff_t head = bytes_to_whole_vectors(to);

    store_register(to, load_register(from));
    to += head;
    from += head;

    for (; dst + size - to >= pass; to += pass) {
        for (ptrdiff_t i = 0; i < pass; i += group)
            for (int k = 0; k < 4; k++) {
                const ptrdiff_t at = i + k * vector_bytes;
                store_register(to + at, load_register(from + at));
            }
        from -= block - pass;
        if (from < dst) from += block;
    }
    memcpy(to, from, dst + size - to);
}
