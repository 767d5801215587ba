/* The kernel of runs whose lengths differ: sums of each, four runs at a time. */

/* The lanes of four runs of any length, from `src` on; the tail of what ends where the data does is copied. */
ON_TARGET BCAST_APART void FN(sum_four_runs)(
    Accumulator *sums, const char *src, const char *end, const ptrdiff_t *lengths, const Term *masks)
{
    Term room[LANES] = {0};
    for (int k = 0; k < 4; src += lengths[k++] * SIZE) {
        const ptrdiff_t length = lengths[k], vectors = length > LANES ? (length + LANES - 1) / LANES : 1;
        const ptrdiff_t left = length - (vectors - 1) * LANES;      /* terms of the tail, from 0 to LANES */
        const char *tail = src + (vectors - 1) * VECTOR;
        if (end - src < length * SIZE + VECTOR) tail = memcpy(room, tail, left * SIZE);
        const FN(quad) quad = {{src}, {tail}, vectors, 0};
        if (vectors < SUM_LONG_VECTORS) FN(sum_lanes)(1, TREE, 0, &sums[k], &quad, masks + 2 * LANES - left);
        else FN(sum_long_run)(&sums[k], &quad, 0, masks + 2 * LANES - left);
    }
}

/* The lanes of runs of up to `vectors` vectors, 1 or 2, as `sum_one_run` gives them but for the signs of zeros. */
SPECIALISED Accumulator FN(sum_short_run)(
    const int vectors, const char *src, ptrdiff_t length, const Term *masks)
{
    const Term *mask = masks + 2 * LANES - length;
    Wide wide = FN(load_masked)(src, mask);
    Accumulator sum = {{0}, {0}};
    if (vectors == 2) {
        const Wide next = FN(load_masked)(src + VECTOR, mask + LANES);
        wide = FN(plus)(&next, &wide);
    }
    FN(join_parts)(0, 1, &sum, &wide);
    return sum;
}

/* Runs of different lengths, four at a time. A sum that is zero is +0, as masked terms are. */
SPECIALISED int FN(sum_quads_of_counts)(
    const int interleave, const bcast_counted_runs *all, const bcast_sink *sink)
{
    const bcast_counted_runs runs = *all;
    const bcast_sink dst = *sink;
    const char *src = runs.src;
    AccVec special = {0}, zero = {0};
    Term masks[4 * LANES] = {0};
    for (int l = 0; l < 2 * LANES; l++) masks[l] = (Term) -1;
    for (ptrdiff_t i = 0; i < runs.count; i += 4) {
        ptrdiff_t length[4] = {0}, any, bytes;
        Accumulator sums[4];
        for (int k = 0; k < 4; k++) length[k] = i + k < runs.count ? runs.counts[i + k] * interleave : 0;
        any = length[0] | length[1] | length[2] | length[3];
        bytes = (length[0] + length[1] + length[2] + length[3]) * SIZE;
        __builtin_prefetch(src + BCAST_PAGE);
        if (any < 2 * LANES && runs.end - src >= bytes + 2 * VECTOR) {
            if (any < LANES) {
                BCAST_UNROLL
                for (int k = 0; k < 4; src += length[k++] * SIZE) sums[k] = FN(sum_short_run)(1, src, length[k], masks);
            } else {
                BCAST_UNROLL
                for (int k = 0; k < 4; src += length[k++] * SIZE) sums[k] = FN(sum_short_run)(2, src, length[k], masks);
            }
        } else {
            Accumulator long_sums[4];       /* in memory, as the others need not be */
            FN(sum_four_runs)(long_sums, src, runs.end, length, masks);
            src += bytes;
            for (int k = 0; k < 4; k++) sums[k] = long_sums[k];
        }
        FN(transpose_reduce)(interleave, sums);
        for (int j = 0; j < 4; j += 4 / interleave) {
            const ptrdiff_t some = (runs.count - i - j) * interleave;
            sums[j].sum += zero;
            if (some > 0) FN(put_some)(&dst, (i + j) * interleave, some, &sums[j], &special);
        }
    }
    return FN(is_special)(&special);
}

/* The same where a vector has no whole number of turns: it holds one, and what follows, of which no sum is kept. */
ON_TARGET static int FN(sum_counted_turns)(const bcast_counted_runs *all, const bcast_sink *sink)
{
    const bcast_counted_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t m = runs.interleave, stride = m * SIZE;
    const ptrdiff_t size = dst.mode == BCAST_WRITE ? SIZE : (ptrdiff_t) sizeof(Acc);
    const char *src = runs.src;
    AccVec special = {0};
    Term room[4 * LANES] = {0};     /* for four turns and what follows */
    Acc sum_room[LANES], error_room[LANES];
    for (ptrdiff_t i = 0; i < runs.count; i++) {
        Accumulator sums[PARTS] = {{{0}, {0}}};
        const int ends = (i + 1) * m + LANES - m > runs.count * m;
        const bcast_sink spare = {dst.mode, (char *) sum_room, (char *) error_room};
        for (ptrdiff_t left = runs.counts[i], n; left > 0; left -= n, src += n * stride) {
            const char *from = src;
            n = left < 4 ? left : 4;
            if (runs.end - src < (n - 1) * stride + VECTOR) from = memcpy(room, src, n * stride);
            switch (n) {
            case 1: FN(add_columns)(1, sums, from, stride, 0); break;
            case 2: FN(add_columns)(2, sums, from, stride, 0); break;
            case 3: FN(add_columns)(3, sums, from, stride, 0); break;
            default: FN(add_columns)(4, sums, from, stride, 0);
            }
        }
        for (int l = 0; l < PARTS; l++)
            FN(put)(ends ? &spare : &dst, (ends ? 0 : i * m) + 4 * l, &sums[l], &special);
        if (ends) memcpy(dst.sum + i * m * size, sum_room, m * size);
        if (ends && COMPENSATED && dst.mode != BCAST_WRITE) memcpy(dst.error + i * m * size, error_room, m * size);
    }
    return FN(is_special)(&special);
}

ON_TARGET BCAST_ALIGNED static int FN(sum_counted_runs)(const bcast_counted_runs *runs, const bcast_sink *dst)
{
    switch (runs->interleave) {
    case 1: return FN(sum_quads_of_counts)(1, runs, dst);
    case 2: return FN(sum_quads_of_counts)(2, runs, dst);
    case 4: return FN(sum_quads_of_counts)(4, runs, dst);
    default: return FN(sum_counted_turns)(runs, dst);
    }
}
