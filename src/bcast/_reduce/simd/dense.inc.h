/* The kernel of dense runs, of 2 to 4 terms with nothing between them: a case of the kernel of runs. */

/* Dense runs, as many as a vector has lanes. As many vectors hold them as one has terms; what stands at one place in
   each is gathered, in the order of the runs. Of 3 terms in 4 lanes:

       a  |0 0 0 1|         first   |0 1 2 3|   their first terms,
       b  |1 1 2 2|   ->    second  |0 1 2 3|   second
       c  |2 3 3 3|         third   |0 1 2 3|   and third ones */
template <class Kind>
SPECIALISED void sum_dense_lanes(
    const int length, const bool are_results, Accumulators<Kind> *sums, const char *src)
{
    using Four = FourSums<Kind>;
    Four terms[4 * Kind::parts];

    for (int k = 0; k < length; k++) {
        const Wide<Kind> wide = load_terms<Kind>(src + k * Kind::vector_bytes);
        for (int l = 0; l < Kind::parts; l++) terms[k * Kind::parts + l] = part(Kind(), wide, l);
    }

    for (int l = 0; l < Kind::parts; l++) {
        const Four a = terms[l * length], b = terms[l * length + 1], c = terms[l * length + length - 1];
        Accumulators<Kind> last = {};
        sums[l].error = sums[l].lost = Four{};

        if (length == 2) {
            const Four first = even(a, b), second = odd(a, b);
            if (are_results) {      /* one addition is rounded once */
                const Four pairs = first + second;
                sums[l].sum = shuffled<0, 2, 1, 3>(pairs, pairs);
            } else {
                begin_pairs<Kind>(&sums[l], shuffled<0, 2, 1, 3>(first, first), shuffled<0, 2, 1, 3>(second, second));
            }
        } else if (length == 3) {
            const Four ab = shuffled<0, 1, 6, 3>(a, b), first = shuffled<0, 5, 2, 3>(ab, c);
            const Four ba = shuffled<0, 5, 2, 3>(b, a), second = shuffled<0, 1, 6, 3>(ba, c);
            const Four cb = shuffled<0, 5, 2, 3>(c, b), third = shuffled<0, 1, 6, 3>(cb, a);
            begin_pairs<Kind>(&sums[l], shuffled<0, 3, 2, 1>(first, first), shuffled<1, 0, 3, 2>(second, second));
            last.sum = shuffled<2, 1, 0, 3>(third, third);
        } else {
            const Four d = terms[l * length + 2];
            Accumulators<Kind> ab, cd;
            begin_pairs<Kind>(&ab, even(a, b), odd(a, b));
            begin_pairs<Kind>(&cd, even(d, c), odd(d, c));
            sums[l].sum = lower(ab.sum, cd.sum);
            last.sum = upper(ab.sum, cd.sum);
            if constexpr (Kind::compensated) {
                sums[l].error = lower(ab.error, cd.error);
                last.error = upper(ab.error, cd.error);
            }
        }
        if (length == 3) two_sum(&sums[l], last.sum);
        if (length == 4) add_sums(&sums[l], &last);
    }
}

/* The last ones, fewer than a vector has lanes, are copied to where they have room. */
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
        if (length == 2 && dst.mode == BCAST_WRITE) sum_dense_lanes(length, true, sums, src);
        else sum_dense_lanes(length, false, sums, src);
        for (int l = 0; l < Kind::parts; l++) put_added(&dst, i + 4 * l, &sums[l], &special);
    }

    memcpy(room, src, (count - whole) * length * Kind::bytes);
    sum_dense_lanes(length, false, sums, reinterpret_cast<const char *>(room));
    for (ptrdiff_t i = whole; i < count; i += 4)
        put_some(&dst, i, count - i, &sums[(i - whole) / 4], &special);
    return done<Kind>(&dst, special);
}
