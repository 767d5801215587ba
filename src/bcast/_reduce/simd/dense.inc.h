/* The kernel of dense runs, of 2 to 4 terms without gaps: a case of the kernel of runs. */

/* The sums of dense runs, one in each lane. The runs fill `length` vectors. Shuffles gather the first terms of all
   runs, the second terms, and so on, in the order of the runs. For example, runs of 3 terms in 4 lanes:

       a  |0 0 0 1|         first   |0 1 2 3|   their first terms,
       b  |1 1 2 2|   ->    second  |0 1 2 3|   second
       c  |2 3 3 3|         third   |0 1 2 3|   and third ones */
template <class Kind>
SPECIALISED void sum_dense_lanes(const int length, Accumulators<Kind> *sums, const char *src)
{
    using Four = FourSums<Kind>;
    Four terms[4 * Kind::parts];

    for (int k = 0; k < length; k++) {
        const Wide<Kind> wide = load_terms<Kind>(src + k * Kind::vector_bytes);
        for (int l = 0; l < Kind::parts; l++) terms[k * Kind::parts + l] = part(Kind(), wide, l);
    }

    for (int l = 0; l < Kind::parts; l++) {
        const Four a = terms[l * length], b = terms[l * length + 1], c = terms[l * length + length - 1];
        Four last = {};
        sums[l].error = Four{};

        if (length == 2) {
            const Four pairs = even(a, b) + odd(a, b);
            sums[l].sum = shuffled<0, 2, 1, 3>(pairs, pairs);
        } else if (length == 3) {
            const Four ab = shuffled<0, 1, 6, 3>(a, b), first = shuffled<0, 5, 2, 3>(ab, c);
            const Four ba = shuffled<0, 5, 2, 3>(b, a), second = shuffled<0, 1, 6, 3>(ba, c);
            const Four cb = shuffled<0, 5, 2, 3>(c, b), third = shuffled<0, 1, 6, 3>(cb, a);
            sums[l].sum = shuffled<0, 3, 2, 1>(first, first) + shuffled<1, 0, 3, 2>(second, second);
            last = shuffled<2, 1, 0, 3>(third, third);
        } else {
            const Four d = terms[l * length + 2];
            const Four ab = even(a, b) + odd(a, b), cd = even(d, c) + odd(d, c);
            sums[l].sum = lower(ab, cd);
            last = upper(ab, cd);
        }
        if (length > 2) two_sum(&sums[l], last);
    }
}

/* The sums of all dense runs. The last runs, if they do not fill the lanes, are copied to a buffer first. */
template <class Kind>
SPECIALISED int sum_dense_runs(const int length, const bcast_term_runs *runs, const bcast_sink *sink)
{
    constexpr int lanes = Kind::lanes;
    const bcast_sink dst = *sink;
    const char *src = runs->src;
    const ptrdiff_t count = runs->count, whole = count / lanes * lanes, nbytes = length * Kind::vector_bytes;
    Term<Kind> room[4 * lanes] = {0};
    Accumulators<Kind> sums[Kind::parts];
    FourSums<Kind> special = {};

    for (ptrdiff_t i = 0; i < whole; i += lanes, src += nbytes) {
        for (ptrdiff_t at = 0; at < nbytes; at += BCAST_LINE) __builtin_prefetch(src + BCAST_PAGE + at);
        sum_dense_lanes(length, sums, src);
        for (int l = 0; l < Kind::parts; l++) put_added(&dst, i + 4 * l, &sums[l], &special);
    }

    memcpy(room, src, (count - whole) * length * Kind::bytes);
    sum_dense_lanes(length, sums, reinterpret_cast<const char *>(room));
    for (ptrdiff_t i = whole; i < count; i += 4)
        put_some(&dst, i, count - i, &sums[(i - whole) / 4], &special);
    return is_special<Kind>(special);
}
