/* The kernel of dense runs, of 2 to 4 terms with nothing between them: a case of the kernel of runs. */

/* LANES dense runs. As many vectors hold them as one has terms; what stands at one place in each is gathered, in the
   order of the runs. Of 3 terms in 4 lanes:

       a  |0 0 0 1|         first   |0 1 2 3|   their first terms,
       b  |1 1 2 2|   ->    second  |0 1 2 3|   second
       c  |2 3 3 3|         third   |0 1 2 3|   and third ones */
SPECIALISED void FN(sum_dense_lanes)(const int length, Accumulator *sums, const char *src)
{
    AccVec terms[4 * PARTS];
    for (int k = 0; k < length; k++) {
        const Wide wide = FN(load)(src + k * VECTOR);
        for (int l = 0; l < PARTS; l++) terms[k * PARTS + l] = FN(part)(&wide, l);
    }
    for (int l = 0; l < PARTS; l++) {
        const AccVec a = terms[l * length], b = terms[l * length + 1], c = terms[l * length + length - 1];
        AccVec last = {0};
        sums[l].error = (AccVec) {0};
        if (length == 2) {
            const AccVec pairs = BCAST_EVEN(a, b) + BCAST_ODD(a, b);
            sums[l].sum = BCAST_SHUFFLE(pairs, pairs, 0, 2, 1, 3);
        } else if (length == 3) {
            const AccVec ab = BCAST_SHUFFLE(a, b, 0, 1, 6, 3), ba = BCAST_SHUFFLE(b, a, 0, 5, 2, 3);
            const AccVec first = BCAST_SHUFFLE(ab, c, 0, 5, 2, 3), second = BCAST_SHUFFLE(ba, c, 0, 1, 6, 3);
            const AccVec cb = BCAST_SHUFFLE(c, b, 0, 5, 2, 3), third = BCAST_SHUFFLE(cb, a, 0, 1, 6, 3);
            sums[l].sum = BCAST_SHUFFLE(first, first, 0, 3, 2, 1) + BCAST_SHUFFLE(second, second, 1, 0, 3, 2);
            last = BCAST_SHUFFLE(third, third, 2, 1, 0, 3);
        } else {
            const AccVec d = terms[l * length + 2], ab = BCAST_EVEN(a, b) + BCAST_ODD(a, b);
            const AccVec cd = BCAST_EVEN(d, c) + BCAST_ODD(d, c);
            sums[l].sum = BCAST_LOWER(ab, cd);
            last = BCAST_UPPER(ab, cd);
        }
        if (length > 2) FN(two_sum)(&sums[l], &last);
    }
}

/* The last ones, fewer than LANES, are copied to where they have room. */
SPECIALISED int FN(sum_dense_runs)(const int length, const bcast_term_runs *runs, const bcast_sink *sink)
{
    const bcast_sink dst = *sink;
    const char *src = runs->src;
    const ptrdiff_t count = runs->count, whole = count / LANES * LANES;
    Term room[4 * LANES] = {0};
    Accumulator sums[PARTS];
    AccVec special = {0};
    for (ptrdiff_t i = 0; i < whole; i += LANES, src += length * VECTOR) {
        for (ptrdiff_t at = 0; at < length * VECTOR; at += 64) __builtin_prefetch(src + BCAST_PAGE + at);
        FN(sum_dense_lanes)(length, sums, src);
        for (int l = 0; l < PARTS; l++) FN(put_added)(&dst, i + 4 * l, &sums[l], &special);
    }
    memcpy(room, src, (count - whole) * length * SIZE);
    FN(sum_dense_lanes)(length, sums, (const char *) room);
    for (ptrdiff_t i = whole; i < count; i += 4)
        FN(put_some)(&dst, i, count - i, &sums[(i - whole) / 4], &special);
    return FN(is_special)(&special);
}
