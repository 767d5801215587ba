/* Runs, many of them: the part of `leaf.h` that sums runs side by side. `add_runs` adds their sums to accumulators;
   `put_runs` writes those of short ones as results, of kinds with PUTS. */

#define SINGLE (sizeof(Term) == 4 && sizeof(Acc) == 8)     /* float32 */

/* Which bytes of the vector in which a run ends are its own. */
TARGET BCAST_SUM_INLINE void IN(mask_end)(Term *mask, ptrdiff_t n)
{
    memset(mask, 0, LANES * sizeof(Term));
    memset(mask, 0xff, n % LANES * sizeof(Term));
}

#if QUADS

/* The sums of the lanes of four vectors that belong to the same of `m` items, 1, 2 or 4, in the first of each 4 / m: as
   many transpositions as it takes, each followed by an addition. */
TARGET BCAST_SUM_INLINE void IN(turn_quad)(const int m, Part *sums, Part *rests)
{
    for (int i = 0; m == 1 && i < 4; i += 2) {
        const Part odd = BCAST_ODD(sums[i], sums[i + 1]);
        sums[i] = BCAST_EVEN(sums[i], sums[i + 1]);
        if (PAIRED) rests[i] = BCAST_EVEN(rests[i], rests[i + 1]) + BCAST_ODD(rests[i], rests[i + 1]);
        IN(absorb)(&sums[i], &rests[i], &odd);
    }
    for (int i = 0, j = 2 / m; m <= 2 && i < 4; i += 2 * j) {
        const Part upper = BCAST_UPPER(sums[i], sums[i + j]);
        sums[i] = BCAST_LOWER(sums[i], sums[i + j]);
        if (PAIRED) rests[i] = BCAST_LOWER(rests[i], rests[i + j]) + BCAST_UPPER(rests[i], rests[i + j]);
        IN(absorb)(&sums[i], &rests[i], &upper);
    }
}

/* The accumulators of four runs, `apart` runs from each other, (+)= the sums of the lanes of four vectors. */
TARGET BCAST_SUM_INLINE void IN(add_quad)(
    const int m, Acc *high, Acc *low, ptrdiff_t apart, Part *sums, Part *rests, int add)
{
    IN(turn_quad)(m, sums, rests);
    for (int i = 0; apart > 1 && i < 4 * m; i++) {
        const ptrdiff_t to = i / m * apart * m + i % m;
        Acc sum = sums[i / 4 * (4 / m)][i % 4], rest = PAIRED ? rests[i / 4 * (4 / m)][i % 4] : 0;
        if (add) {
            IN(absorb_one)(&sum, &rest, &high[to]);
            if (PAIRED) rest += low[to];
        }
        high[to] = sum;
        if (PAIRED) low[to] = rest;
    }
    for (int i = 0; apart == 1 && i < 4; i += 4 / m) {
        if (add) {
            const Part before = BCAST_AT(Part, high + i * m, 0);
            IN(absorb)(&sums[i], &rests[i], &before);
            if (PAIRED) rests[i] += BCAST_AT(Part, low + i * m, 0);
        }
        BCAST_AT(Part, high + i * m, 0) = sums[i];
        if (PAIRED) BCAST_AT(Part, low + i * m, 0) = rests[i];
    }
}

/* The sum of `full` vectors at x, and a part of one if `partial`: four at most, all in all. */
TARGET BCAST_SUM_INLINE Work IN(sum_few)(const int full, const int partial, const char *x, const Term *mask)
{
    enum { SIZE = LANES * sizeof(Term) };
    Work end = partial ? IN(load_masked)(x + full * SIZE, mask) : IN(load)(x + (full - 1) * SIZE);
    Work few;
    if (full + partial == 4) {
        few = IN(load)(x + 2 * SIZE);
        end = IN(plus)(&end, &few);
    }
    if (full + partial > 1) {
        few = full + partial > 2 ? IN(sum_of_2)(x, SIZE) : IN(load)(x);
        end = IN(plus)(&end, &few);
    }
    return end;
}

/* The lanes of four runs, `apart` bytes from each other: `full` vectors, and a part of one if `partial`. */
TARGET BCAST_SUM_INLINE void IN(sum_short_runs)(
    const int full, const int partial, Part *sums, Part *rests, const char *x, ptrdiff_t apart, const Term *mask)
{
    enum { TREE = PAIRED ? 2 : 4 };
    for (int k = 0; k < 4; k++, x += apart) {
        const char *at = x;
        Work all = {0};
        for (int v = 0; v < full + partial; v += TREE, at += TREE * LANES * sizeof(Term)) {
            const int whole = full - v < TREE ? full - v : TREE;
            const Work few = IN(sum_few)(whole, partial && whole < TREE, at, mask);
            if (PAIRED && v > 0) IN(absorb_parts)(&sums[k], &rests[k], &few);
            else all = v > 0 ? all + few : few;
            if (v == 0) sums[k] = IN(part)(&all, 0);
        }
        if (!PAIRED) sums[k] = IN(part)(&all, 0);
        if (PARTS == 2) sums[k] += IN(part)(&all, 1);
    }
}

/* Short runs in fours that are `apart`: the first `count`. */
TARGET BCAST_SUM_INLINE void IN(add_short_runs)(
    const int m, const int full, const int partial, Acc *high, Acc *low, ptrdiff_t apart, const char *x,
    ptrdiff_t count, ptrdiff_t step, const Term *mask, int add)
{
    for (ptrdiff_t i = 0; i < count; i += apart > 1 ? 1 : 4) {
        Part sums[4], rests[4] = {0};
        IN(sum_short_runs)(full, partial, sums, rests, x + i * step, apart * step, mask);
        IN(add_quad)(m, high + i * m, low + i * m, apart, sums, rests, add);
    }
}

/* LANES runs of `n` terms, 2 to 4, one after the other. So many vectors hold as many runs as one has lanes; what stands
   at one place in each run is gathered, in the order of the runs. The last sum is an exact one if `rests` are given. */
TARGET BCAST_SUM_INLINE void IN(sum_tiny_runs)(const int n, Part *sums, Part *rests, const char *x)
{
    Part terms[4 * PARTS];
    for (int k = 0; k < n; k++) {
        const Work work = IN(load)(x + k * LANES * (ptrdiff_t) sizeof(Term));
        for (int l = 0; l < PARTS; l++) terms[k * PARTS + l] = IN(part)(&work, l);
    }
    for (int l = 0; l < PARTS; l++) {
        const Part a = terms[l * n], b = terms[l * n + 1], c = terms[l * n + n - 1];
        Part sum, last;
        if (n == 2) {
            const Part pairs = BCAST_EVEN(a, b) + BCAST_ODD(a, b);
            sum = BCAST_SHUFFLE(pairs, pairs, 0, 2, 1, 3);
        } else if (n == 3) {
            const Part ab = BCAST_SHUFFLE(a, b, 0, 1, 6, 3), ba = BCAST_SHUFFLE(b, a, 0, 5, 2, 3);
            const Part first = BCAST_SHUFFLE(ab, c, 0, 5, 2, 3), second = BCAST_SHUFFLE(ba, c, 0, 1, 6, 3);
            const Part cb = BCAST_SHUFFLE(c, b, 0, 5, 2, 3), third = BCAST_SHUFFLE(cb, a, 0, 1, 6, 3);
            sum = BCAST_SHUFFLE(first, first, 0, 3, 2, 1) + BCAST_SHUFFLE(second, second, 1, 0, 3, 2);
            last = BCAST_SHUFFLE(third, third, 2, 1, 0, 3);
        } else {
            const Part d = terms[l * n + 2], ab = BCAST_EVEN(a, b) + BCAST_ODD(a, b);
            const Part cd = BCAST_EVEN(d, c) + BCAST_ODD(d, c);
            sum = BCAST_LOWER(ab, cd);
            last = BCAST_UPPER(ab, cd);
        }
        if (n > 2 && rests) IN(absorb)(&sum, &rests[l], &last);
        else if (n > 2) sum += last;
        sums[l] = sum;
    }
}

/* Runs of 2 to 4 terms, one after the other: `count` of them, a multiple of LANES. */
TARGET BCAST_SUM_INLINE void IN(add_tiny_runs)(
    const int n, Acc *high, Acc *low, const char *x, ptrdiff_t count, int add)
{
    for (ptrdiff_t i = 0; i < count; i += LANES) {
        Part sums[PARTS], rests[PARTS] = {0};
        IN(sum_tiny_runs)(n, sums, rests, x + i * n * (ptrdiff_t) sizeof(Term));
        for (int l = 0; l < PARTS; l++) {
            Acc *to = high + i + 4 * l, *to_low = low + i + 4 * l;
            if (add) {
                const Part before = BCAST_AT(Part, to, 0);
                if (PAIRED) rests[l] += BCAST_AT(Part, to_low, 0);
                IN(absorb)(&sums[l], &rests[l], &before);
            }
            BCAST_AT(Part, to, 0) = sums[l];
            if (PAIRED) BCAST_AT(Part, to_low, 0) = rests[l];
        }
    }
}

/* DO for runs of `full` vectors, and a part of one if `partial`: all those that bcast_is_short tells of. */
#define BCAST_SHORT_RUNS(m, n, DO)                                                  \
    switch (n / LANES * 2 + (n % LANES > 0)) {                                      \
    case 1: DO(0, 1); break;                                                        \
    case 2: DO(1, 0); break;                                                        \
    case 3: DO(1, 1); break;                                                        \
    case 4: DO(2, 0); break;                                                        \
    case 5: if (m == 1) DO(2, 1); break;                                            \
    case 6: if (m == 1) DO(3, 0); break;                                            \
    case 7: if (m == 1) DO(3, 1); break;                                            \
    case 8: if (m == 1) DO(4, 0); break;                                            \
    case 12: if (m == 1) DO(6, 0); break;                                           \
    case 16: if (m == 1) DO(8, 0); break;                                           \
    }

/* The length of runs that are gathered, or 0: asked where they lie, as copies of some are summed like all others. */
TARGET BCAST_SUM_INLINE int IN(tiny)(ptrdiff_t m, ptrdiff_t step, ptrdiff_t n)
{
    const int most = PAIRED || LANES > 4 ? 4 : 3;   /* terms of a whole vector are as fast otherwise, if not in pairs */
    return m == 1 && n >= 2 && n <= most && step == n * (ptrdiff_t) sizeof(Term) ? (int) n : 0;
}

/* As add_quads, if the runs are short; tells whether they are. */
TARGET BCAST_SUM_INLINE int IN(add_short_quads)(
    const int m, Acc *high, Acc *low, ptrdiff_t apart, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n,
    int tiny, const Term *mask, int add)
{
    if (!bcast_is_short(n, m, LANES)) return 0;
    if (tiny == 2) IN(add_tiny_runs)(2, high, low, x, count, add);
    else if (tiny == 3) IN(add_tiny_runs)(3, high, low, x, count, add);
    else if (tiny == 4) IN(add_tiny_runs)(4, high, low, x, count, add);
#define BCAST_ADD(full, partial) IN(add_short_runs)(m, full, partial, high, low, apart, x, count, step, mask, add)
    else BCAST_SHORT_RUNS(m, n, BCAST_ADD)
#undef BCAST_ADD
    return 1;
}

/* The lanes of four runs, `apart` bytes from each other, side by side, as the additions to one wait for each other. What
   is `ahead` of each is fetched. */
TARGET BCAST_SUM_INLINE void IN(sum_runs_together)(
    Part *sums, Part *rests, const char *x, ptrdiff_t apart, ptrdiff_t ahead, ptrdiff_t n, const Term *mask)
{
    enum { TREE = PAIRED ? 2 : 4, SIZE = LANES * sizeof(Term) };
    Part all[4] = {0}, lost[4] = {0};   /* not in memory as what is pointed to */
    for (; n >= TREE * LANES; n -= TREE * LANES, x += TREE * SIZE) {
        for (int k = 0; k < 4; k++) {
            BCAST_FETCH(x + k * apart + ahead);
            const Work few = PAIRED ? IN(sum_of_2)(x + k * apart, SIZE) : IN(sum_of_4)(x + k * apart, SIZE);
            for (int i = 0; i < PARTS; i++) {
                const Part part = IN(part)(&few, i);
                IN(append)(&all[k], &lost[k], &part);
            }
        }
    }
    for (; n > 0; n -= LANES, x += SIZE) {
        for (int k = 0; k < 4; k++) {
            const Work few = n < LANES ? IN(load_masked)(x + k * apart, mask) : IN(load)(x + k * apart);
            for (int i = 0; i < PARTS; i++) {
                const Part part = IN(part)(&few, i);
                IN(absorb)(&all[k], &lost[k], &part);
            }
        }
    }
    for (int k = 0; k < 4; k++) {
        sums[k] = all[k];
        rests[k] = lost[k];
    }
}

TARGET BCAST_SUM_INLINE void IN(add_long_quads_of)(
    const int m, Acc *high, Acc *low, ptrdiff_t apart, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n,
    const Term *mask, int far, int add)
{
    const int alone = (PARTS == 2 && n >= 16 * LANES) || (SINGLE && !far && n >= 128 * LANES);  /* as fast or faster */
    const ptrdiff_t once = apart > 1 ? 1 : 4;
    const ptrdiff_t ahead = far || n * (ptrdiff_t) sizeof(Term) < BCAST_AHEAD ? once * step : BCAST_AHEAD / 2;
    for (ptrdiff_t i = 0; i < count; i += once) {
        Part sums[4], rests[4];
        if (!alone) IN(sum_runs_together)(sums, rests, x + i * step, apart * step, ahead, n, mask);
        for (int k = 0; alone && k < 4; k++) IN(sum_run)(&sums[k], &rests[k], x + (i + k * apart) * step, n, mask);
        IN(add_quad)(m, high + i * m, low + i * m, apart, sums, rests, add);
    }
}

/* As add_quads, for runs that are not short. */
TARGET BCAST_SUM_APART void IN(add_long_quads)(
    ptrdiff_t m, Acc *high, Acc *low, ptrdiff_t apart, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n,
    const Term *mask, int far, int add)
{
    if (m == 1) IN(add_long_quads_of)(1, high, low, apart, x, count, step, n, mask, far, add);
    else if (m == 2) IN(add_long_quads_of)(2, high, low, apart, x, count, step, n, mask, far, add);
    else IN(add_long_quads_of)(4, high, low, apart, x, count, step, n, mask, far, add);
}

/* As add_runs: the first `count` runs, in fours that are `apart`; in eights if that is 1, for tiny ones. */
TARGET static void IN(add_quads)(
    ptrdiff_t m, Acc *high, Acc *low, ptrdiff_t apart, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n,
    int tiny, const Term *mask, int far, int add)
{
    const int done = m == 1 ? IN(add_short_quads)(1, high, low, apart, x, count, step, n, tiny, mask, add)
        : m == 2 ? IN(add_short_quads)(2, high, low, apart, x, count, step, n, 0, mask, add)
        : IN(add_short_quads)(4, high, low, apart, x, count, step, n, 0, mask, add);
    if (!done) IN(add_long_quads)(m, high, low, apart, x, count, step, n, mask, far, add);
}

/* How many of the first runs may be loaded by whole vectors without passing the end of the last: a multiple of `of`. */
TARGET BCAST_SUM_INLINE ptrdiff_t IN(roomy)(ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, int dense, ptrdiff_t of)
{
    const ptrdiff_t size = sizeof(Term), reach = (n + LANES - 1) / LANES * LANES * size;
    const ptrdiff_t most = (count - 1) * step + n * size - reach;
    if (!dense && (step <= 0 || most < 0)) return 0;
    if (!dense && most / step + 1 < count) count = most / step + 1;
    return count / of * of;
}

/* Copy `count` short runs, LANES at most, to `room`, and zeros for the others: side by side if `tiny`, or by
   whole vectors. Returns their step. */
TARGET BCAST_SUM_INLINE ptrdiff_t IN(copy_runs)(
    Term *room, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, int tiny)
{
    const ptrdiff_t length = tiny ? n : (n + LANES - 1) / LANES * LANES;
    memset(room, 0, LANES * length * sizeof(Term));
    for (ptrdiff_t i = 0; i < count; i++) memcpy(room + i * length, x + i * step, n * sizeof(Term));
    return length * sizeof(Term);
}

/* As add_runs, for short runs by way of a copy with room behind. */
TARGET BCAST_SUM_APART void IN(add_copied)(
    Acc *high, Acc *low, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, ptrdiff_t m, int tiny,
    const Term *mask, int add)
{
    Term room[LANES * 8 * LANES];
    Acc sums[4 * LANES] = {0}, rests[4 * LANES] = {0};
    for (ptrdiff_t few; count > 0; count -= few, x += few * step, high += few * m, low += PAIRED ? few * m : 0) {
        ptrdiff_t next;
        few = count < LANES ? count : LANES;
        next = IN(copy_runs)(room, x, few, step, n, tiny);
        if (add) memcpy(sums, high, few * m * sizeof(Acc));
        if (PAIRED && add) memcpy(rests, low, few * m * sizeof(Acc));
        IN(add_quads)(m, sums, rests, 1, (const char *) room, LANES, next, n, tiny, mask, 0, add);
        memcpy(high, sums, few * m * sizeof(Acc));
        if (PAIRED) memcpy(low, rests, few * m * sizeof(Acc));
    }
}

#endif

/* high[i * m + j] + low[i * m + j] (+)= the sum of the terms j, j + m, j + 2 * m, ... of the `n` at x + i * step; m is 1,
   2 or 4. What comes from `far`, past the caches, is taken from four places by turns. The sum of a short run does not
   depend on where it stands. */
TARGET static void IN(add_runs)(
    void *highs, void *lows, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, ptrdiff_t m, int far, int add)
{
    Acc *high = highs, *low = lows;
    const ptrdiff_t reach = (n + LANES - 1) / LANES * LANES * sizeof(Term), end = (count - 1) * step + n * sizeof(Term);
    Term mask[LANES];
    ptrdiff_t i = 0;
    IN(mask_end)(mask, n);
#if QUADS
    const int tiny = IN(tiny)(m, step, n);
    i = IN(roomy)(count, step, n, tiny, 8);
    if (far && n > LANES && reach < BCAST_SHORT_ROW)
        IN(add_quads)(m, high, low, i / 4, x, i / 4, step, n, tiny, mask, far, add);
    else IN(add_quads)(m, high, low, 1, x, i, step, n, tiny, mask, far, add);
    if (i < count && bcast_is_short(n, m, LANES)) {
        IN(add_copied)(high + i * m, low + (PAIRED ? i * m : 0), x + i * step, count - i, step, n, m, tiny, mask, add);
        return;
    }
#else
    (void) far;
#endif
    for (; i < count; i++) {
        Part sums, rests;
        Acc sum[4] = {0}, rest[4] = {0};
        for (ptrdiff_t j = 0; add && j < m; j++) {
            sum[j] = high[i * m + j];
            if (PAIRED) rest[j] = low[i * m + j];
        }
        IN(sum_run)(&sums, &rests, x + i * step, n, i * step + reach <= end ? mask : NULL);
        for (int k = 0; k < (int) (sizeof(Part) / sizeof(Acc)); k++) {
            IN(absorb_one)(&sum[k % m], &rest[k % m], (const Acc *) &sums + k);
            if (PAIRED) rest[k % m] += ((const Acc *) &rests)[k];
        }
        for (ptrdiff_t j = 0; j < m; j++) {
            high[i * m + j] = sum[j];
            if (PAIRED) low[i * m + j] = rest[j];
        }
    }
}

#if PUTS

/* The results of LANES runs, short or tiny. */
TARGET BCAST_SUM_INLINE void IN(put_few)(
    const int m, const int full, const int partial, const int tiny, char *to, const char *x, ptrdiff_t step,
    const Term *mask, Part *special)
{
    enum { SIZE = 4 * sizeof(Term) };
    Part sums[4 + PARTS], rests[4 + PARTS] = {0};
    if (SINGLE && tiny == 2) {
        BCAST_JOIN_3(put_pairs, f32, ISA)(to, x);
        return;
    }
    if (tiny) {
        IN(sum_tiny_runs)(tiny, sums, NULL, x);
        for (int l = 0; l < PARTS; l++) IN(put_part)(to + l * SIZE, &sums[l], &rests[l], special);
        return;
    }
    for (int l = 0; l < LANES / 4; l++, x += 4 * step) {
        for (int k = 0; k < 4; k++) rests[k] = (Part) {0};
        IN(sum_short_runs)(full, partial, sums, rests, x, step, mask);
        IN(turn_quad)(m, sums, rests);
        for (int i = 0; i < 4; i += 4 / m, to += SIZE) IN(put_part)(to, &sums[i], &rests[i], special);
    }
}

/* As put_quads, for one length. From `far`, LANES runs are taken from each of four places by turns, until they make
   whole lines of results: these are put together first, if they are `streamed`. */
TARGET BCAST_SUM_INLINE int IN(put_quads_of)(
    const int m, const int full, const int partial, const int tiny, char *to, const char *x, ptrdiff_t count,
    ptrdiff_t step, const Term *mask, int far, int streamed)
{
    enum { LINE = 64, FEW = LANES * sizeof(Term), MOST = 4 * FEW > LINE ? 4 * FEW : LINE };     /* bytes */
    const ptrdiff_t size = m * sizeof(Term), line = m * FEW < LINE ? LINE / size : LANES;       /* runs */
    const ptrdiff_t quarter = far ? count / (4 * line) * line : 0;
    Part special = {0};
    char room[4 * MOST];
    for (ptrdiff_t i = 0; i < quarter; i += line) {
        char *first = streamed ? room : to + i * size;
        const ptrdiff_t next = streamed ? MOST : quarter * size;
        for (ptrdiff_t j = 0; j < line; j += LANES)
            for (int k = 0; k < 4; k++)
                IN(put_few)(
                    m, full, partial, tiny, first + k * next + j * size, x + (k * quarter + i + j) * step, step, mask,
                    &special);
        for (int k = 0; streamed && k < 4; k++)
            bcast_stream_lines(to + (k * quarter + i) * size, room + k * MOST, line * size);
    }
    for (ptrdiff_t i = 4 * quarter; i < count; i += LANES)
        IN(put_few)(m, full, partial, tiny, to + i * size, x + i * step, step, mask, &special);
    return IN(is_special)(&special);
}

/* As put_runs, for the first `count`, a multiple of LANES. */
TARGET BCAST_SUM_INLINE int IN(put_quads_by)(
    const int m, char *to, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, int tiny, const Term *mask,
    int far, int streamed)
{
    int special = 0;
    if (tiny == 2) special = IN(put_quads_of)(1, 0, 0, 2, to, x, count, step, mask, far, streamed);
    else if (tiny == 3) special = IN(put_quads_of)(1, 0, 0, 3, to, x, count, step, mask, far, streamed);
    else if (tiny == 4) special = IN(put_quads_of)(1, 0, 0, 4, to, x, count, step, mask, far, streamed);
#define BCAST_PUT(full, partial) \
    special = IN(put_quads_of)(m, full, partial, 0, to, x, count, step, mask, far, streamed)
    else BCAST_SHORT_RUNS(m, n, BCAST_PUT)
#undef BCAST_PUT
    return special;
}

TARGET BCAST_SUM_APART int IN(put_quads)(
    char *to, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, ptrdiff_t m, int tiny, const Term *mask,
    int far, int streamed)
{
    if (m == 1) return IN(put_quads_by)(1, to, x, count, step, n, tiny, mask, far, streamed);
    if (m == 2) return IN(put_quads_by)(2, to, x, count, step, n, 0, mask, far, streamed);
    return IN(put_quads_by)(4, to, x, count, step, n, 0, mask, far, streamed);
}

/* The same by way of copies with room behind. */
TARGET BCAST_SUM_APART int IN(put_copied)(
    char *to, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, ptrdiff_t m, int tiny, const Term *mask)
{
    Term room[LANES * 8 * LANES], results[4 * LANES];
    int special = 0;
    for (ptrdiff_t i = 0, few; i < count; i += few) {
        ptrdiff_t next;
        few = count - i < LANES ? count - i : LANES;
        next = IN(copy_runs)(room, x + i * step, few, step, n, tiny);
        special |= IN(put_quads)((char *) results, (const char *) room, LANES, next, n, m, tiny, mask, 0, 0);
        memcpy(to + i * m * sizeof(Term), results, few * m * sizeof(Term));
    }
    return special;
}

/* Write the sums that add_runs gives of short runs, as terms one after the other; past the caches if `streamed`. Tells
   whether one is infinite or no number, where paired. */
TARGET static int IN(put_runs)(
    char *to, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, ptrdiff_t m, int far, int streamed)
{
    const ptrdiff_t size = m * sizeof(Term);
    const int tiny = IN(tiny)(m, step, n);
    Term mask[LANES];
    ptrdiff_t head = 0, whole;
    int special = 0;
    IN(mask_end)(mask, n);
    if (streamed) {     /* whole lines */
        head = (ptrdiff_t) (-(uintptr_t) to & 63) / size;
        head = head < count ? head : count;
        special |= IN(put_copied)(to, x, head, step, n, m, tiny, mask);
        to += head * size;
        x += head * step;
        count -= head;
    }
    whole = IN(roomy)(count, step, n, tiny, LANES);
    special |= IN(put_quads)(to, x, whole, step, n, m, tiny, mask, far, streamed && (uintptr_t) to % 64 == 0);
    return special | IN(put_copied)(to + whole * size, x + whole * step, count - whole, step, n, m, tiny, mask);
}

#endif

#undef BCAST_SHORT_RUNS

#undef SINGLE
