/* The kernels of one KIND of narrow integers on one TARGET; `target.inc.h` includes this file for each kind. Sums wrap
   in the terms' own width, in vectors of 32 bytes, so that a sum is a result already and nothing is packed. */

#define OF(name) BCAST_JOIN(KIND, name)
#define FN(name) BCAST_JOIN_3(name, KIND, TARGET)
#define Term OF(term)
#define SIZE ((ptrdiff_t) sizeof(Term))
#define BLOCK ((ptrdiff_t) 32)      /* bytes of a vector */

/* dst[i] += src[i] */
ON_TARGET static void FN(add_accumulators)(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    Term *sum = (Term *) dst->sum;
    const Term *more = (const Term *) src->sum;
    for (ptrdiff_t i = 0; i < n; i++) sum[i] = (Term) (sum[i] + more[i]);
}

/* Add up `length` rows of few accumulators, `n`, in each group; sums lie one behind the other then. */
ON_TARGET static void FN(fold)(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    Term *dst = (Term *) all->sum;
    const Term *src = dst, *end = dst + groups * length * n;
    for (; src < end; src += length * n)
        for (ptrdiff_t k = 0; k < n; k++) {
            Term sum = src[k];
            for (ptrdiff_t i = n + k; i < length * n; i += n) sum = (Term) (sum + src[i]);
            *dst++ = sum;
        }
}

/* Sum rows column by column: those that are narrower than a vector. */
ON_TARGET static void FN(sum_narrow_rows)(const bcast_term_rows *rows, const bcast_sink *dst)
{
    for (ptrdiff_t j = 0; j < rows->width; j++) {
        char *to = dst->sum + j * SIZE;     /* a result may be aligned to nothing */
        Term sum = 0;
        if (dst->mode == BCAST_ADD) memcpy(&sum, to, sizeof sum);
        for (ptrdiff_t t = 0; t < rows->turns; t++) {
            const char *src = rows->src + t * rows->advance + j * SIZE;
            for (ptrdiff_t i = 0; i < rows->rows; i++) {
                const char *at = src + i % 4 * rows->stride + i / 4 * rows->half_stride;
                sum = (Term) (sum + bcast_read(OF(dtype), 0, at));
            }
        }
        memcpy(to, &sum, sizeof sum);
    }
}

/* The sum of each of `m` items, up to four, that take turns in a run. */
ON_TARGET static void FN(sum_short_run)(const char *src, ptrdiff_t length, ptrdiff_t m, Term *sums)
{
    for (int k = 0; k < 4; k++) sums[k] = 0;
    for (ptrdiff_t i = 0; i < length; i += m)
        for (ptrdiff_t k = 0; k < m; k++) sums[k] = (Term) (sums[k] + bcast_read(OF(dtype), 0, src + (i + k) * SIZE));
}

#if BCAST_VECTORS

#define Vector OF(vector)

/* Add one vector of each of `n` rows to `sum`. */
ON_TARGET BCAST_INLINE void FN(add_columns)(
    const int n, Vector *sum, const char *src, ptrdiff_t stride, ptrdiff_t half_stride)
{
    for (int i = 0; i < n; i++) *sum += BCAST_AT(const Vector, src + i % 4 * stride + i / 4 * half_stride, 0);
}

/* The sums of `n` rows in each turn. The last vector is moved back to end with the rows, and begun before the others
   change what it adds to. */
SPECIALISED int FN(sum_n_rows)(const int n, const bcast_term_rows *all, const bcast_sink *sink)
{
    const bcast_term_rows rows = *all;
    const ptrdiff_t last = rows.width * SIZE - BLOCK;
    const Vector zero = {0};
    const char *src = rows.src;
    char *sums = sink->sum;
    int adds = sink->mode == BCAST_ADD;
    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, src += rows.advance, adds = 1) {
        Vector end = adds ? BCAST_AT(const Vector, sums + last, 0) : zero;
        FN(add_columns)(n, &end, src + last, rows.stride, rows.half_stride);
        for (ptrdiff_t at = 0; at < last; at += BLOCK) {
            Vector sum = adds ? BCAST_AT(const Vector, sums + at, 0) : zero;
            FN(add_columns)(n, &sum, src + at, rows.stride, rows.half_stride);
            BCAST_AT(Vector, sums + at, 0) = sum;
        }
        BCAST_AT(Vector, sums + last, 0) = end;
    }
    return 0;
}

#define CASE(n) case n: return FN(sum_n_rows)(n, rows, dst);
ON_TARGET static int FN(sum_rows)(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (rows->width * SIZE < BLOCK) {
        FN(sum_narrow_rows)(rows, dst);
        return 0;
    }
    switch (rows->rows) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) }
    return 0;
}
#undef CASE

/* The vectors of a run, four at a time; of the last one, which is moved back to end with the run, only what no other
   has. Lanes of one item of those that take turns are added up by halves then. */
ON_TARGET BCAST_INLINE void FN(sum_long_run)(const char *src, ptrdiff_t nbytes, ptrdiff_t m, Term *sums)
{
    static const uint8_t tail_masks[64] = {
        [32] = 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    };
    const char *end = src + nbytes;
    const ptrdiff_t rest = nbytes % BLOCK;
    Vector all[4] = {{0}, {0}, {0}, {0}};
    Term lanes[32 / sizeof(Term)];
    for (; end - src >= 4 * BLOCK; src += 4 * BLOCK) {
        __builtin_prefetch(src + BCAST_PAGE / 2);
        __builtin_prefetch(src + BCAST_PAGE / 2 + 64);
        for (int i = 0; i < 4; i++) all[i] += BCAST_AT(const Vector, src, i);
    }
    for (; end - src >= BLOCK; src += BLOCK) all[0] += BCAST_AT(const Vector, src, 0);
    if (rest) all[1] += BCAST_AT(const Vector, end - BLOCK, 0) & BCAST_AT(const Vector, tail_masks + rest, 0);
    all[0] += all[1] + (all[2] + all[3]);
    memcpy(lanes, &all[0], sizeof lanes);
    for (int width = (int) (16 / SIZE); width >= 4; width /= 2)
        for (int i = 0; i < width; i++) lanes[i] = (Term) (lanes[i] + lanes[i + width]);
    if (m <= 2) for (int i = 0; i < 2; i++) lanes[i] = (Term) (lanes[i] + lanes[i + 2]);
    if (m == 1) lanes[0] = (Term) (lanes[0] + lanes[1]);
    for (ptrdiff_t k = 0; k < m; k++) sums[k] = lanes[k];
}

#else

ON_TARGET static int FN(sum_rows)(const bcast_term_rows *rows, const bcast_sink *dst)
{
    FN(sum_narrow_rows)(rows, dst);
    return 0;
}

BCAST_INLINE void FN(sum_long_run)(const char *src, ptrdiff_t nbytes, ptrdiff_t m, Term *sums)
{
    FN(sum_short_run)(src, nbytes / SIZE, m, sums);
}

#endif

ON_TARGET static int FN(sum_runs)(const bcast_term_runs *all, const bcast_sink *dst)
{
    const bcast_term_runs runs = *all;
    const ptrdiff_t m = runs.interleave, nbytes = runs.length * SIZE;
    const int adds = dst->mode == BCAST_ADD;
    char *to = dst->sum;    /* a result may be aligned to nothing */
    Term sums[4];
    for (ptrdiff_t i = 0; i < runs.count; i++) {
        if (nbytes >= BLOCK) FN(sum_long_run)(runs.src + i * runs.stride, nbytes, m, sums);
        else FN(sum_short_run)(runs.src + i * runs.stride, runs.length, m, sums);
        for (ptrdiff_t k = 0; k < m; k++, to += SIZE) {
            Term sum = 0;
            if (adds) memcpy(&sum, to, sizeof sum);
            sum = (Term) (sum + sums[k]);
            memcpy(to, &sum, sizeof sum);
        }
    }
    return 0;
}

#undef KIND
#undef BLOCK
