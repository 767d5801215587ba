/* The kernel of runs of different lengths: a sum of each run, four runs at a time. */

/* The lanes of four runs of any length, from `src` on. A tail near the end of the data is copied before it is read. */
template <class Kind>
BCAST_APART void sum_four_runs(
    Accumulators<Kind> *sums, const char *src, const char *end, const ptrdiff_t *lengths, const Term<Kind> *masks)
{
    constexpr int lanes = Kind::lanes;
    Term<Kind> room[lanes] = {0};

    for (int k = 0; k < 4; src += lengths[k++] * Kind::bytes) {
        const ptrdiff_t length = lengths[k], vectors = length > lanes ? (length + lanes - 1) / lanes : 1;
        const ptrdiff_t left = length - (vectors - 1) * lanes;      /* terms of the tail, from 0 to `lanes` */
        const char *tail = src + (vectors - 1) * Kind::vector_bytes;
        if (end - src < length * Kind::bytes + Kind::vector_bytes)
            tail = static_cast<const char *>(memcpy(room, tail, left * Kind::bytes));

        const Quad quad = {{src}, {tail}, vectors, 0};
        const Term<Kind> *mask = masks + 2 * lanes - left;
        if (vectors < SUM_LONG_VECTORS) sum_lanes(1, tree_of<Kind>, false, &sums[k], &quad, mask);
        else sum_long_run(&sums[k], &quad, 0, mask);
    }
}

/* The lanes of a run of up to `vectors` vectors, 1 or 2: those of `sum_lanes`, except for the signs of zeros. */
template <class Kind>
SPECIALISED Accumulators<Kind> sum_short_run(
    const int vectors, const char *src, ptrdiff_t length, const Term<Kind> *masks)
{
    const Term<Kind> *mask = masks + 2 * Kind::lanes - length;
    Wide<Kind> wide = load_masked<Kind>(src, mask);
    Accumulators<Kind> sum = {};

    if (vectors == 2) wide = plus<Kind>(load_masked<Kind>(src + Kind::vector_bytes, mask + Kind::lanes), wide);
    join_parts(false, true, &sum, wide);
    return sum;
}

/* Four such runs, contiguous. */
template <class Kind>
BCAST_INLINE void sum_four_short_runs(
    const int vectors, Accumulators<Kind> *sums, const char *src, const ptrdiff_t *lengths, const Term<Kind> *masks)
{
    BCAST_UNROLL
    for (int k = 0; k < 4; src += lengths[k++] * Kind::bytes)
        sums[k] = sum_short_run<Kind>(vectors, src, lengths[k], masks);
}

/* Runs of different lengths, four at a time. */
template <class Kind>
SPECIALISED int sum_quads_of_counts(const int interleave, const bcast_counted_runs *all, const bcast_sink *sink)
{
    constexpr int lanes = Kind::lanes;
    const bcast_counted_runs runs = *all;
    const bcast_sink dst = *sink;
    const char *src = runs.src;
    FourSums<Kind> special = {};
    Term<Kind> masks[4 * lanes] = {0};

    for (int l = 0; l < 2 * lanes; l++) masks[l] = static_cast<Term<Kind>>(-1);

    for (ptrdiff_t i = 0; i < runs.count; i += 4) {
        ptrdiff_t length[4] = {0};
        Accumulators<Kind> sums[4];
        for (int k = 0; k < 4; k++) length[k] = i + k < runs.count ? runs.counts[i + k] * interleave : 0;
        const ptrdiff_t any = length[0] | length[1] | length[2] | length[3];
        const ptrdiff_t nbytes = (length[0] + length[1] + length[2] + length[3]) * Kind::bytes;
        const bool has_room = runs.end - src >= nbytes + 2 * Kind::vector_bytes;
        __builtin_prefetch(src + BCAST_PAGE);

        if (any < lanes && has_room) {
            sum_four_short_runs(1, sums, src, length, masks);
        } else if (any < 2 * lanes && has_room) {
            sum_four_short_runs(2, sums, src, length, masks);
        } else {
            Accumulators<Kind> long_sums[4];        /* separate, so that `sums` can stay in registers */
            sum_four_runs(long_sums, src, runs.end, length, masks);
            for (int k = 0; k < 4; k++) sums[k] = long_sums[k];
        }
        src += nbytes;

        transpose_reduce(interleave, sums);
        for (int j = 0; j < 4; j += 4 / interleave) {
            const ptrdiff_t some = (runs.count - i - j) * interleave;
            if (some > 0) put_some(&dst, (i + j) * interleave, some, &sums[j], &special);
        }
    }
    return is_special<Kind>(special);
}

/* Add up to four turns to accumulators. */
template <class Kind>
BCAST_INLINE void add_turns(ptrdiff_t n, Accumulators<Kind> *sums, const char *src, ptrdiff_t stride)
{
    switch (n) {
    case 1: add_columns(1, sums, src, stride, 0); break;
    case 2: add_columns(2, sums, src, stride, 0); break;
    case 3: add_columns(3, sums, src, stride, 0); break;
    default: add_columns(4, sums, src, stride, 0);
    }
}

/* The same if a vector has no whole number of turns. It holds one turn and the terms after it, whose sums are unused.
   */
template <class Kind>
int sum_counted_turns(const bcast_counted_runs *all, const bcast_sink *sink)
{
    constexpr int lanes = Kind::lanes;
    const bcast_counted_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t turn = runs.interleave, stride = turn * Kind::bytes;
    const ptrdiff_t size = dst.mode == BCAST_WRITE ? Kind::bytes : static_cast<ptrdiff_t>(sizeof(Sum<Kind>));
    const char *src = runs.src;
    FourSums<Kind> special = {};
    Term<Kind> room[4 * lanes] = {0};       /* four turns, and the terms after each */
    Sum<Kind> sum_room[lanes], error_room[lanes];
    const bcast_sink spare = {dst.mode, reinterpret_cast<char *>(sum_room), reinterpret_cast<char *>(error_room)};

    for (ptrdiff_t i = 0; i < runs.count; i++) {
        Accumulators<Kind> sums[Kind::parts] = {};
        const bool ends = (i + 1) * turn + lanes - turn > runs.count * turn;

        for (ptrdiff_t left = runs.counts[i], n; left > 0; left -= n, src += n * stride) {
            const char *from = src;
            n = left < 4 ? left : 4;
            if (runs.end - src < (n - 1) * stride + Kind::vector_bytes)
                from = static_cast<const char *>(memcpy(room, src, n * stride));
            add_turns(n, sums, from, stride);
        }

        for (int l = 0; l < Kind::parts; l++)
            put(ends ? &spare : &dst, (ends ? 0 : i * turn) + 4 * l, &sums[l], &special);
        if (ends) memcpy(dst.sum + i * turn * size, sum_room, turn * size);
        if (ends && Kind::compensated && dst.mode != BCAST_WRITE)
            memcpy(dst.error + i * turn * size, error_room, turn * size);
    }
    return is_special<Kind>(special);
}

template <class Kind>
BCAST_ALIGNED int sum_counted_runs(const bcast_counted_runs *runs, const bcast_sink *dst)
{
    switch (runs->interleave) {
    case 1: return sum_quads_of_counts<Kind>(1, runs, dst);
    case 2: return sum_quads_of_counts<Kind>(2, runs, dst);
    case 4: return sum_quads_of_counts<Kind>(4, runs, dst);
    default: return sum_counted_turns<Kind>(runs, dst);
    }
}
