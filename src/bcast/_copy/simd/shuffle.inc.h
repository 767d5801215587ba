/* The kernels of `program.h` for one TARGET. `shuffle.h` includes this file for each, and defines

       TARGET, NARROWER            its name, and that of the target that takes items shorter than a vector
       ON_TARGET                   how functions are compiled for it
       Vector                      its vectors
       LOAD, STORE, SHUFFLE        a vector's bytes in memory, and those that an index picks of a window

   A vector that ends a row, a run or an item is laid back to end with it: it covers some bytes once more. */

#define FN(name) BCAST_JOIN(name, TARGET)
#define OF_NARROWER(name) BCAST_JOIN(name, NARROWER)
#define VECTOR_BYTES ((ptrdiff_t) sizeof(Vector))
#define VECTORS_OF(size) (((size) + VECTOR_BYTES - 1) / VECTOR_BYTES)

/* Vectors `first` to first + n of each of `times` spans. Their indices and places are in registers, as no store should
   wait for a load to say where it goes. */
ON_TARGET BCAST_INLINE void FN(execute_group)(
    const int n, const bcast_shuffle_table *table, int first, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t src_step = table->src_step, dst_step = table->dst_step;
    Vector index[BCAST_GROUP_VECTORS];
    ptrdiff_t at[BCAST_GROUP_VECTORS], to[BCAST_GROUP_VECTORS];
    for (int i = 0; i < n; i++) {
        index[i] = LOAD(table->index + (first + i) * VECTOR_BYTES);
        at[i] = table->src_at[first + i];
        to[i] = table->dst_at[first + i];
    }
    for (; times > 0; times--, src += src_step, dst += dst_step)
        for (int i = 0; i < n; i++) STORE(dst + to[i], SHUFFLE(src + at[i], index[i]));
}

/* Groups of vectors follow each other over a chunk of output that the first-level cache holds. That would be wrong
   where the last vector passes the end of its span, on which the next span's first one is: there vectors simply follow
   each other. */
ON_TARGET static void FN(execute)(
    const bcast_shuffle_table *table, int vectors, ptrdiff_t times, const uint8_t *src, uint8_t *dst)
{
    if (times == 1 || (vectors > BCAST_GROUP_VECTORS && !table->exact)) {
        for (; times > 0; times--, src += table->src_step, dst += table->dst_step)
            for (int i = 0; i < vectors; i++)
                STORE(dst + table->dst_at[i],
                    SHUFFLE(src + table->src_at[i], LOAD(table->index + i * VECTOR_BYTES)));
        return;
    }
    while (times > 0) {
        const ptrdiff_t most = vectors > BCAST_GROUP_VECTORS ? 1 + BCAST_L1 / 2 / table->dst_step : times;
        const ptrdiff_t n = times < most ? times : most;
        int i = 0;
        for (; vectors - i >= BCAST_GROUP_VECTORS; i += BCAST_GROUP_VECTORS)
            FN(execute_group)(BCAST_GROUP_VECTORS, table, i, n, src, dst);
        switch (vectors - i) {
        case 3: FN(execute_group)(3, table, i, n, src, dst); break;
        case 2: FN(execute_group)(2, table, i, n, src, dst); break;
        case 1: FN(execute_group)(1, table, i, n, src, dst); break;
        }
        times -= n;
        src += n * table->src_step;
        dst += n * table->dst_step;
    }
}

/* Runs of so many `vectors`. */
ON_TARGET BCAST_INLINE void FN(fill_short)(
    const int vectors, const bcast_rows *rows, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t size = rows->size, run = rows->times * size;
    const Vector index = LOAD(bcast_fill_index[size]);
    for (ptrdiff_t n = rows->count; n > 0; n--, src += size, dst += run) {
        const Vector vector = SHUFFLE(src, index);
        for (int i = 0; i < vectors - 1; i++) STORE(dst + i * VECTOR_BYTES, vector);
        STORE(dst + run - VECTOR_BYTES, vector);
    }
}

ON_TARGET static void FN(fill)(const bcast_rows *rows, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t size = rows->size, run = rows->times * size;
    switch (VECTORS_OF(run)) {
    case 1: FN(fill_short)(1, rows, src, dst); return;
    case 2: FN(fill_short)(2, rows, src, dst); return;
    case 3: FN(fill_short)(3, rows, src, dst); return;
    case 4: FN(fill_short)(4, rows, src, dst); return;
    }
    const Vector index = LOAD(bcast_fill_index[size]);
    for (ptrdiff_t n = rows->count; n > 0; n--, src += size, dst += run) {
        const Vector vector = SHUFFLE(src, index);
        ptrdiff_t i = -(uintptr_t) dst & (VECTOR_BYTES - 1);    /* where stores cross no line */
        if (i & (size - 1)) i = 0;
        else STORE(dst, vector);
        for (; i <= run - 4 * VECTOR_BYTES; i += 4 * VECTOR_BYTES)
            for (int k = 0; k < 4; k++) STORE(dst + i + k * VECTOR_BYTES, vector);
        for (; i < run - VECTOR_BYTES; i += VECTOR_BYTES) STORE(dst + i, vector);
        STORE(dst + run - VECTOR_BYTES, vector);
    }
}

/* Items of so many `vectors`, each to `times` places `step` bytes from each other, and more if there are counts; the
   next one's begin at `next`, or behind the counted ones. The loop that always runs `times` can be predicted. */
ON_TARGET BCAST_INLINE void FN(copy_rows)(
    const int vectors, const bcast_rows *rows, const int64_t *counts, ptrdiff_t step, ptrdiff_t next,
    const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t n = rows->count, size = rows->size, times = rows->times, last = size - VECTOR_BYTES;
    for (ptrdiff_t i = 0; i < n; i++, src += size) {
        const ptrdiff_t count = counts ? counts[i] : times;
        Vector part[BCAST_ITEM_VECTORS];
        uint8_t *place = dst;
        for (int k = 0; k < vectors; k++) part[k] = LOAD(src + (k < vectors - 1 ? k * VECTOR_BYTES : last));
        for (ptrdiff_t j = 0; j < times; j++, place += step)
            for (int k = 0; k < vectors; k++) STORE(place + (k < vectors - 1 ? k * VECTOR_BYTES : last), part[k]);
        for (ptrdiff_t j = times; j < count; j++, place += step)
            for (int k = 0; k < vectors; k++) STORE(place + (k < vectors - 1 ? k * VECTOR_BYTES : last), part[k]);
        dst += counts ? count * step : next;
    }
}

#define CASE(n) case n: \
        if (counts) FN(copy_rows)(n, rows, counts, size, 0, src, dst); \
        else FN(copy_rows)(n, rows, NULL, size, rows->times * size, src, dst); \
        break;
ON_TARGET static void FN(repeat_rows)(
    const bcast_rows *rows, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t size = rows->size;
    if (size < VECTOR_BYTES) {
        OF_NARROWER(repeat_rows)(rows, counts, src, dst);
        return;
    }
    switch (VECTORS_OF(size)) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) }
}
#undef CASE

/* So many `vectors` of each item are stored without a branch, which could not be predicted. */
ON_TARGET BCAST_INLINE void FN(repeat_counted_by)(
    const int vectors, const bcast_rows *items, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t n = items->count, size = items->size, step = VECTOR_BYTES / size * size, stored = vectors * step;
    const Vector index = LOAD(bcast_fill_index[size]);
    for (ptrdiff_t i = 0; i < n; i++, src += size) {
        const Vector vector = SHUFFLE(src, index);
        const ptrdiff_t run = counts[i] * size;
        for (int j = 0; j < vectors; j++) STORE(dst + j * step, vector);
        if (run > stored)
            for (ptrdiff_t at = stored; at < run; at += step) STORE(dst + at, vector);
        dst += run;
    }
}

ON_TARGET static void FN(repeat_counted)(
    const bcast_rows *items, const int64_t *counts, const uint8_t *src, uint8_t *dst)
{
    switch (items->times * BCAST_WINDOW_BYTES / VECTOR_BYTES) {
    case 0: OF_NARROWER(repeat_counted)(items, counts, src, dst); return;   /* fewer stores cross lines */
    case 1: FN(repeat_counted_by)(1, items, counts, src, dst); return;
    case 2: FN(repeat_counted_by)(2, items, counts, src, dst); return;
    case 4: FN(repeat_counted_by)(4, items, counts, src, dst); return;
    default: FN(repeat_counted_by)(8, items, counts, src, dst);
    }
}

ON_TARGET static void FN(copy_to_many)(
    ptrdiff_t times, ptrdiff_t step, ptrdiff_t size, const uint8_t *src, uint8_t *dst)
{
    const ptrdiff_t piece = BCAST_ITEM_VECTORS * VECTOR_BYTES, rest = size % piece;
    for (ptrdiff_t n; times > 0; times -= n, dst += n * step) {
        n = times < 4 ? times : 4;      /* places and the data may all want one set of a cache, of 8 ways */
        const bcast_rows pieces = {size / piece, n, piece}, last = {1, n, piece};
        FN(copy_rows)(BCAST_ITEM_VECTORS, &pieces, NULL, step, piece, src, dst);
        if (rest) FN(copy_rows)(BCAST_ITEM_VECTORS, &last, NULL, step, piece, src + size - piece, dst + size - piece);
    }
}

ON_TARGET static void FN(tile)(ptrdiff_t block, ptrdiff_t size, uint8_t *dst)
{
    const ptrdiff_t group = 4 * VECTOR_BYTES, pass = block - block % group;
    const uint8_t *from = dst;
    uint8_t *to = dst + block;
    const ptrdiff_t head = -(uintptr_t) to & (VECTOR_BYTES - 1);    /* from there on stores cross no line */
    STORE(to, LOAD(from));
    to += head;
    from += head;
    for (; dst + size - to >= pass; to += pass) {
        for (ptrdiff_t i = 0; i < pass; i += group)
            for (int k = 0; k < 4; k++) STORE(to + i + k * VECTOR_BYTES, LOAD(from + i + k * VECTOR_BYTES));
        from -= block - pass;
        if (from < dst) from += block;
    }
    memcpy(to, from, dst + size - to);
}

#undef FN
#undef OF_NARROWER
#undef VECTORS_OF
#undef TARGET
#undef NARROWER
#undef ON_TARGET
#undef Vector
#undef VECTOR_BYTES
#undef LOAD
#undef STORE
#undef SHUFFLE
