/* The leaves that sum terms of one KIND by one instruction set, ISA: `_sum.h` includes this file for each of both.

   Accumulators are pairs (high, low) where the kind is `paired`: low holds what rounding high loses, so that the error does
   not grow with the number of terms. Elsewhere low is neither read nor written. What is summed is added to them where
   `add` says so; otherwise they are set. Terms may be aligned to nothing. */

#define OF(name) BCAST_JOIN(KIND, name)
#define IN(name) BCAST_JOIN_3(name, KIND, ISA)
#define Term OF(term)
#define Acc OF(acc)
#define Total OF(total)
#define LANES OF(lanes)
#define PAIRED OF(paired)

/* high + low += term: Knuth's exact sum of two where paired. */
#define BCAST_ABSORB(name, Type)                                                    \
TARGET BCAST_SUM_INLINE void IN(name)(Type *high, Type *low, Type term)             \
{                                                                                   \
    const Type sum = *high + term;                                                  \
    if (PAIRED) {                                                                   \
        const Type part = sum - *high;                                              \
        *low += (*high - (sum - part)) + (term - part);                             \
    }                                                                               \
    *high = sum;                                                                    \
}
BCAST_ABSORB(absorb, Acc)
BCAST_ABSORB(absorb_lanes, Total)
#undef BCAST_ABSORB

/* Add the vectors at x, x + step, ...: `n` of them, 1 or 8. A tree of plain sums comes first, of 4 where paired: two
   roundings stand between a term and the pair. */
TARGET BCAST_SUM_INLINE void IN(take)(Total *high, Total *low, const int n, const char *x, ptrdiff_t step)
{
    if (n == 1) {
        IN(absorb_lanes)(high, low, BCAST_CONVERT(IN(load)(x), Total));
        return;
    }
    OF(work) sum = (IN(load)(x) + IN(load)(x + step)) + (IN(load)(x + 2 * step) + IN(load)(x + 3 * step));
    x += 4 * step;
    if (PAIRED) IN(absorb_lanes)(high, low, BCAST_CONVERT(sum, Total));
    OF(work) more = (IN(load)(x) + IN(load)(x + step)) + (IN(load)(x + 2 * step) + IN(load)(x + 3 * step));
    IN(absorb_lanes)(high, low, BCAST_CONVERT(PAIRED ? more : sum + more, Total));
}

/* high[j] + low[j] (+)= the sum of the items j of `n` rows, 1 or 8. */
TARGET BCAST_SUM_INLINE void IN(add_few_rows)(
    const int n, const int add, Acc *high, Acc *low, const char *x, ptrdiff_t row_step, ptrdiff_t m)
{
    ptrdiff_t j = 0;
    for (; j + LANES <= m; j += LANES, x += LANES * sizeof(Term)) {
        Total sum = {0}, rest = {0};
        if (add) {
            memcpy(&sum, high + j, sizeof sum);
            if (PAIRED) memcpy(&rest, low + j, sizeof rest);
        }
        IN(take)(&sum, &rest, n, x, row_step);
        memcpy(high + j, &sum, sizeof sum);
        if (PAIRED) memcpy(low + j, &rest, sizeof rest);
    }
    for (; j < m; j++, x += sizeof(Term)) {
        Acc sum = add ? high[j] : 0, rest = PAIRED && add ? low[j] : 0;
        for (int i = 0; i < n; i++) IN(absorb)(&sum, &rest, OF(load_one)(x + i * row_step));
        high[j] = sum;
        if (PAIRED) low[j] = rest;
    }
}

/* For each of `count` groups of rows: high[j] + low[j] (+)= the sum of the items j of its rows, `m` items each. */
TARGET static void IN(add_rows)(
    void *highs, void *lows, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t row_step,
    ptrdiff_t m, int add)
{
    Acc *high = highs, *low = lows;
    for (; count > 0; count--, x += step, high += m, low += PAIRED ? m : 0) {
        const char *row = x;
        ptrdiff_t left = rows;
        if (!add) {
            const int first = left >= 8 ? 8 : 1;
            if (first == 8) IN(add_few_rows)(8, 0, high, low, row, row_step, m);
            else IN(add_few_rows)(1, 0, high, low, row, row_step, m);
            left -= first;
            row += first * row_step;
        }
        for (; left >= 8; left -= 8, row += 8 * row_step) IN(add_few_rows)(8, 1, high, low, row, row_step, m);
        for (; left > 0; left--, row += row_step) IN(add_few_rows)(1, 1, high, low, row, row_step, m);
    }
}

/* high[i] + low[i] (+)= the sum of the `n` terms at x + i * step. */
TARGET static void IN(add_runs)(
    void *highs, void *lows, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, int add)
{
    Acc *high = highs, *low = lows;
    for (ptrdiff_t i = 0; i < count; i++, x += step) {
        const char *at = x;
        ptrdiff_t left = n;
        Acc sum = add ? high[i] : 0, rest = PAIRED && add ? low[i] : 0;
        if (left >= LANES) {
            Total sums = {0}, rests = {0};
            Acc lane[LANES], lane_rest[LANES];
            for (; left >= 8 * LANES; left -= 8 * LANES, at += 8 * LANES * sizeof(Term))
                IN(take)(&sums, &rests, 8, at, LANES * sizeof(Term));
            for (; left >= LANES; left -= LANES, at += LANES * sizeof(Term)) IN(take)(&sums, &rests, 1, at, 0);
            memcpy(lane, &sums, sizeof sums);
            memcpy(lane_rest, &rests, sizeof rests);
            for (int half = LANES / 2; half > 0; half /= 2)
                for (int k = 0; k < half; k++) {
                    IN(absorb)(&lane[k], &lane_rest[k], lane[k + half]);
                    if (PAIRED) lane_rest[k] += lane_rest[k + half];
                }
            IN(absorb)(&sum, &rest, lane[0]);
            if (PAIRED) rest += lane_rest[0];
        }
        for (; left > 0; left--, at += sizeof(Term)) IN(absorb)(&sum, &rest, OF(load_one)(at));
        high[i] = sum;
        if (PAIRED) low[i] = rest;
    }
}

/* high[i] + low[i] += high_2[i] + low_2[i] */
TARGET static void IN(add_accumulators)(
    void *highs, void *lows, const void *highs_2, const void *lows_2, ptrdiff_t n)
{
    Acc *high = highs, *low = lows;
    const Acc *high_2 = highs_2, *low_2 = lows_2;
    for (ptrdiff_t i = 0; i < n; i++) {
        IN(absorb)(&high[i], &low[i], high_2[i]);
        if (PAIRED) low[i] += low_2[i];
    }
}

#undef OF
#undef IN
#undef Term
#undef Acc
#undef Total
#undef LANES
#undef PAIRED
#undef KIND
