/* The leaves that sum terms of one KIND by one instruction set, ISA: `kinds.h` includes this file for each of both.

   Accumulators are pairs (high, low) where the kind is `paired`: low holds what rounding high loses, so that the error
   does not grow with the number of terms. Elsewhere low is neither read nor written. What is summed is added to them
   where `add` says so; otherwise they are set. Terms may be aligned to nothing. */

#define OF(name) BCAST_JOIN(KIND, name)
#define IN(name) BCAST_JOIN_3(name, KIND, ISA)
#define Term OF(term)
#define Work OF(work)
#define Acc OF(acc)
#define Part OF(part)
#define LANES OF(lanes)
#define PARTS OF(parts)
#define PAIRED OF(paired)
#define CONVERTED OF(converted)

/* high + low += term: Knuth's exact sum of two where paired. */
#define BCAST_ABSORB(name, Type)                                                    \
TARGET BCAST_SUM_INLINE void IN(name)(Type *high, Type *low, const Type *term)      \
{                                                                                   \
    const Type sum = *high + *term;                                                 \
    if (PAIRED) {                                                                   \
        const Type part = sum - *high;                                              \
        *low += (*high - (sum - part)) + (*term - part);                            \
    }                                                                               \
    *high = sum;                                                                    \
}
BCAST_ABSORB(absorb_one, Acc)
BCAST_ABSORB(absorb, Part)
#undef BCAST_ABSORB

/* The same by Dekker's sum, for one term of many: it is exact unless that is larger than high, and is rounded then.
   Multiplied by one, it is added by the units that multiply, which have nothing else to do. */
TARGET BCAST_SUM_INLINE void IN(append)(Part *high, Part *low, const Part *term)
{
    const Part sum = *high + *term;
    if (PAIRED) {
        const Part one = BCAST_ONE(Part);
        *low = (*term * one - (sum - *high)) * one + *low;
    }
    *high = sum;
}

TARGET BCAST_SUM_INLINE void IN(absorb_parts)(Part *high, Part *low, const Work *sum)
{
    for (int i = 0; i < PARTS; i++) {
        const Part part = IN(part)(sum, i);
        IN(absorb)(&high[i], &low[i], &part);
    }
}

/* a + b. The units that add have terms to convert as well, on some machines; those that multiply have nothing else to
   do, and add what is multiplied by one. */
TARGET BCAST_SUM_INLINE Work IN(plus)(const Work *a, const Work *b)
{
    return CONVERTED ? *a * BCAST_ONE(Work) + *b : *a + *b;
}

/* The vectors at x and x + step. */
TARGET BCAST_SUM_INLINE Work IN(sum_of_2)(const char *x, ptrdiff_t step)
{
    const Work a = IN(load)(x), b = IN(load)(x + step);
    return IN(plus)(&a, &b);
}

/* The vectors at x, x + step, x + 2 * step and x + 3 * step. */
TARGET BCAST_SUM_INLINE Work IN(sum_of_4)(const char *x, ptrdiff_t step)
{
    const Work a = IN(sum_of_2)(x, step), b = IN(sum_of_2)(x + 2 * step, step);
    return IN(plus)(&a, &b);
}

/* sums + rests += the four vectors that are `far` from each other; or eight, the others `near` these. A tree of plain
   sums comes first: where paired, of two, which leaves one rounding between a term and its pair, and if pairs are
   `two`, the trees are theirs by turns. */
TARGET BCAST_SUM_INLINE void IN(append_vectors)(
    const int n, const int two, Part *sums, Part *rests, const char *x, ptrdiff_t far, ptrdiff_t near)
{
    if (PAIRED) {
        for (int i = 0; i < n; i += 4, x += near) {
            const Work a = IN(sum_of_2)(x, far), b = IN(sum_of_2)(x + 2 * far, far);
            const Part first = IN(part)(&a, 0), second = IN(part)(&b, 0);
            IN(append)(sums, rests, &first);
            IN(append)(sums + two, rests + two, &second);
        }
    } else {
        Work sum = IN(sum_of_4)(x, far);
        if (n == 8) {
            const Work rest = IN(sum_of_4)(x + near, far);
            sum = IN(plus)(&sum, &rest);
        }
        IN(absorb_parts)(sums, rests, &sum);
    }
}

/* sums + rests += LANES items of each of `n` rows: up to seven that are `far` from each other, or eight, the last four
   `near` the others. Without `add` both are zero. */
TARGET BCAST_SUM_INLINE void IN(append_rows)(
    const int n, const int add, Part *sums, Part *rests, const char *x, ptrdiff_t far, ptrdiff_t near)
{
    int i = n / 4 * 4;
    if (i) {
        IN(append_vectors)(i, 0, sums, rests, x, far, near);
    } else if (PAIRED && !add) {
        const Work row = IN(load)(x);
        sums[i++] = IN(part)(&row, 0);
    }
    if (PAIRED && n - i >= 2 && (n > 4 || add)) {
        const Work pair = IN(sum_of_2)(x + i * far, far);
        const Part part = IN(part)(&pair, 0);
        IN(append)(sums, rests, &part);
        i += 2;
    }
    for (; i < n; i++) {
        const Work row = IN(load)(x + i * far);
        IN(absorb_parts)(sums, rests, &row);
    }
}

/* sums and rests from the accumulators high and low if these are added to, or zero. */
TARGET BCAST_SUM_INLINE void IN(begin)(const int add, Part *sums, Part *rests, const Acc *high, const Acc *low)
{
    for (int i = 0; i < PARTS; i++) {
        sums[i] = add ? BCAST_AT(Part, high, i) : (Part) {0};
        rests[i] = PAIRED && add ? BCAST_AT(Part, low, i) : (Part) {0};
    }
}

TARGET BCAST_SUM_INLINE void IN(keep)(Acc *high, Acc *low, const Part *sums, const Part *rests)
{
    for (int i = 0; i < PARTS; i++) {
        BCAST_AT(Part, high, i) = sums[i];
        if (PAIRED) BCAST_AT(Part, low, i) = rests[i];
    }
}

/* high[j] + low[j] (+)= the sum of the items j of `n` rows, as append_rows takes them. The last vector is laid back to end
   with them, and begun before the others change what it adds to: all items are summed alike. */
TARGET BCAST_SUM_INLINE void IN(add_few_rows)(
    const int n, const int add, Acc *high, Acc *low, const char *x, ptrdiff_t far, ptrdiff_t near, ptrdiff_t m)
{
    const ptrdiff_t last = m - LANES;
    if (last >= 0) {
        Part end[PARTS], end_rests[PARTS];
        IN(begin)(add, end, end_rests, high + last, low + last);
        for (ptrdiff_t j = 0; j < last; j += LANES) {
            Part sums[PARTS], rests[PARTS];
            IN(begin)(add, sums, rests, high + j, low + j);
            IN(append_rows)(n, add, sums, rests, x + j * sizeof(Term), far, near);
            IN(keep)(high + j, low + j, sums, rests);
        }
        IN(append_rows)(n, add, end, end_rests, x + last * sizeof(Term), far, near);
        IN(keep)(high + last, low + last, end, end_rests);
        return;
    }
    for (ptrdiff_t j = 0; j < m; j++, x += sizeof(Term)) {
        Acc sum = add ? high[j] : 0, rest = PAIRED && add ? low[j] : 0;
        for (int i = 0; i < n; i++) {
            const Acc term = OF(load_one)(x + (n == 8 ? i % 4 * far + i / 4 * near : i * far));
            IN(absorb_one)(&sum, &rest, &term);
        }
        high[j] = sum;
        if (PAIRED) low[j] = rest;
    }
}

TARGET static void IN(add_some_rows)(
    int n, int add, Acc *high, Acc *low, const char *x, ptrdiff_t far, ptrdiff_t near, ptrdiff_t m)
{
#define BCAST_ROWS(n)                                                               \
    case n:                                                                         \
        if (add) IN(add_few_rows)(n, 1, high, low, x, far, near, m);                \
        else IN(add_few_rows)(n, 0, high, low, x, far, near, m);                    \
        break;
    switch (n) {
    BCAST_ROWS(1)
    BCAST_ROWS(2)
    BCAST_ROWS(3)
    BCAST_ROWS(4)
    BCAST_ROWS(5)
    BCAST_ROWS(6)
    BCAST_ROWS(7)
    BCAST_ROWS(8)
    }
#undef BCAST_ROWS
}

/* For each of `count` groups of rows: high[j] + low[j] (+)= the sum of the items j of its rows, `m` items each. Short
   rows are taken from the four quarters of the group by turns: memory gives several streams faster than one. */
TARGET static void IN(add_rows)(
    void *highs, void *lows, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t row_step,
    ptrdiff_t m, int add)
{
    Acc *high = highs, *low = lows;
    const int is_short = m * (ptrdiff_t) sizeof(Term) <= BCAST_SHORT_ROW;
    const int n = row_step % 2048 == 0 || (is_short && PAIRED) ? 4 : 8;     /* eight would share lines of a cache */
    const ptrdiff_t turns = rows / n, rest = rows % n, near = n / 4 * row_step;
    const ptrdiff_t far = is_short ? turns * near : near, next = is_short ? near : 4 * near;
    for (; count > 0; count--, x += step, high += m, low += PAIRED ? m : 0) {
        const char *row = x + (rows - rest) * row_step;
        int more = add;
        for (ptrdiff_t i = 0; i < turns; i++, more = 1)
            IN(add_some_rows)(n, more, high, low, x + i * next, far, row_step, m);
        if (rest) IN(add_some_rows)((int) rest, more, high, low, row, row_step, row_step, m);
    }
}

#if PUTS

/* Four sums as results; *special becomes NaN if one of them is infinite or no number, where paired. */
TARGET BCAST_SUM_INLINE void IN(put_part)(char *to, Part *sum, const Part *rest, Part *special)
{
    if (PAIRED) {
        *sum += *rest;
        *special = *sum * 0 + *special;
    }
    IN(put)(to, sum);
}

TARGET BCAST_SUM_INLINE int IN(is_special)(const Part *special)
{
    Acc all[4];
    memcpy(all, special, sizeof all);
    return PAIRED && !(all[0] + all[1] + all[2] + all[3] == 0);
}

TARGET BCAST_SUM_INLINE void IN(put_columns)(
    const int n, char *to, const char *x, ptrdiff_t row_step, ptrdiff_t m, Part *special)
{
    const ptrdiff_t last = m - LANES;
    Part any = *special;    /* not in memory */
    for (ptrdiff_t j = 0; j < m; j += LANES) {
        const ptrdiff_t at = (j < last ? j : last) * sizeof(Term);
        Part sums[PARTS] = {0}, rests[PARTS] = {0};
        IN(append_rows)(n, 0, sums, rests, x + at, row_step, 0);
        for (int i = 0; i < PARTS; i++) IN(put_part)(to + at + i * 4 * sizeof(Term), &sums[i], &rests[i], &any);
    }
    *special = any;
}

TARGET BCAST_SUM_APART void IN(put_some_columns)(
    ptrdiff_t n, char *to, const char *x, ptrdiff_t row_step, ptrdiff_t m, Part *special)
{
    switch (n) {
    case 2: IN(put_columns)(2, to, x, row_step, m, special); break;
    case 3: IN(put_columns)(3, to, x, row_step, m, special); break;
    case 4: IN(put_columns)(4, to, x, row_step, m, special); break;
    case 5: IN(put_columns)(5, to, x, row_step, m, special); break;
    case 6: IN(put_columns)(6, to, x, row_step, m, special); break;
    case 7: IN(put_columns)(7, to, x, row_step, m, special); break;
    }
}

/* Write the sums that add_rows gives of few rows, 2 to 7, as `m` terms, LANES or more; past the caches if `streamed`. Tells
   whether one is infinite or no number, where paired. */
TARGET static int IN(put_rows)(
    char *to, const char *x, ptrdiff_t rows, ptrdiff_t row_step, ptrdiff_t m, int streamed)
{
    enum { SIZE = sizeof(Term), LINE = 64 / SIZE, FEW = 16 * LINE };
    Part special = {0};
    ptrdiff_t j = 0;
    if (streamed && m >= 2 * FEW && (uintptr_t) to % SIZE == 0) {
        char room[FEW * SIZE];
        j = LINE + (ptrdiff_t) (-(uintptr_t) to & 63) / SIZE;
        IN(put_some_columns)(rows, to, x, row_step, j, &special);
        for (; m - j >= FEW + LANES; j += FEW) {
            IN(put_some_columns)(rows, room, x + j * SIZE, row_step, FEW, &special);
            bcast_stream_lines(to + j * SIZE, room, FEW * SIZE);
        }
    }
    IN(put_some_columns)(rows, to + j * SIZE, x + j * SIZE, row_step, m - j, &special);
    return IN(is_special)(&special);
}

#endif

/* sums + rests = 8 * `turns` vectors at x, a longer run. It is read in quarters side by side, if these are long: memory
   gives several streams faster than one. Otherwise vectors are fetched ahead, those of the next run, too. */
TARGET BCAST_SUM_APART void IN(sum_vectors)(Part *sums, Part *rests, const char *x, ptrdiff_t turns)
{
    const ptrdiff_t step = LANES * sizeof(Term), quarter = turns * 2 * step;
    Part all[2] = {0}, lost[2] = {0};   /* not in memory as what is pointed to */
    if (4 * quarter >= BCAST_LONG_RUN) {
        for (; turns > 0; turns--, x += 2 * step) IN(append_vectors)(8, 1, all, lost, x, quarter, step);
    } else {
        for (; turns > 0; turns--, x += 8 * step) {
            for (ptrdiff_t line = 0; line < 8 * step; line += 64) BCAST_FETCH(x + BCAST_AHEAD + line);
            IN(append_vectors)(8, 1, all, lost, x, step, 4 * step);
        }
    }
    for (int i = 0; i < 2; i++) {
        sums[i] = all[i];
        rests[i] = lost[i];
    }
}

/* The lanes of *sum + *rest = the `n` terms at x. Where they end within a vector, that is loaded as a whole, for what
   `mask` leaves of it; or, without a mask, one by one. */
TARGET BCAST_SUM_INLINE void IN(sum_run)(Part *sum, Part *rest, const char *x, ptrdiff_t n, const Term *mask)
{
    const ptrdiff_t step = LANES * sizeof(Term), turns = n / (8 * LANES);
    Part sums[2] = {0}, rests[2] = {0};
    if (turns * 8 * step >= BCAST_AHEAD) {
        Part all[2], lost[2];
        IN(sum_vectors)(all, lost, x, turns);
        for (int i = 0; i < 2; i++) {
            sums[i] = all[i];
            rests[i] = lost[i];
        }
    } else {
        for (ptrdiff_t i = 0; i < turns; i++) IN(append_vectors)(8, 1, sums, rests, x + i * 8 * step, step, 4 * step);
    }
    x += turns * 8 * step;
    n %= 8 * LANES;
    for (; n >= 2 * LANES; n -= 2 * LANES, x += 2 * step) {
        const Work few = IN(sum_of_2)(x, step);
        IN(absorb_parts)(sums, rests, &few);
    }
    if (n >= LANES) {
        const Work few = IN(load)(x);
        IN(absorb_parts)(sums, rests, &few);
        n -= LANES;
        x += step;
    }
    if (n > 0) {
        Term terms[LANES] = {0};
        Work few;
        if (mask) {
            few = IN(load_masked)(x, mask);
        } else {
            for (ptrdiff_t k = 0; k < n; k++) memcpy(&terms[k], x + k * sizeof(Term), sizeof(Term));
            few = IN(load)((const char *) terms);
        }
        IN(absorb_parts)(sums, rests, &few);
    }
    *sum = sums[0];
    *rest = rests[0];
    if (PARTS == 2 || PAIRED) IN(absorb)(sum, rest, &sums[1]);
    if (PAIRED) *rest += rests[1];
}

#include "runs.h"

/* high[i] + low[i] += high_2[i] + low_2[i] */
TARGET static void IN(add_accumulators)(
    void *highs, void *lows, const void *highs_2, const void *lows_2, ptrdiff_t n)
{
    Acc *high = highs, *low = lows;
    const Acc *high_2 = highs_2, *low_2 = lows_2;
    for (ptrdiff_t i = 0; i < n; i++) {
        IN(absorb_one)(&high[i], &low[i], &high_2[i]);
        if (PAIRED) low[i] += low_2[i];
    }
}

#undef OF
#undef IN
#undef Term
#undef Work
#undef Acc
#undef Part
#undef LANES
#undef PARTS
#undef PAIRED
#undef CONVERTED
#undef KIND
