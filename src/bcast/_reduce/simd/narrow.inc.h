/* Sums of narrow integers, which wrap around in the terms' own width, in vectors of 32 bytes. A sum is already a
   result, and nothing is packed. Results need no alignment. */

/* The term, or the sum, at `at`. */
template <class Kind>
BCAST_INLINE Term<Kind> narrow_at(const char *at)
{
    Term<Kind> value;
    memcpy(&value, at, sizeof value);
    return value;
}

template <class Kind>
BCAST_INLINE void set_narrow(char *at, Term<Kind> value)
{
    memcpy(at, &value, sizeof value);
}

template <class Kind>
BCAST_INLINE Term<Kind> wrapped(Term<Kind> a, Term<Kind> b)
{
    return static_cast<Term<Kind>>(a + b);
}

/* Add `n` accumulators to `n` others. */
template <class Kind>
void add_narrow_accumulators(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    auto *sum = reinterpret_cast<Term<Kind> *>(dst->sum);
    const auto *more = reinterpret_cast<const Term<Kind> *>(src->sum);

    for (ptrdiff_t i = 0; i < n; i++) sum[i] = wrapped<Kind>(sum[i], more[i]);
}

/* Add each group's `length` rows of `n` accumulators, which are few, in place; the sums become contiguous. */
template <class Kind>
void fold_narrow(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    auto *dst = reinterpret_cast<Term<Kind> *>(all->sum);
    const Term<Kind> *src = dst, *end = dst + groups * length * n;

    for (; src < end; src += length * n) {
        for (ptrdiff_t k = 0; k < n; k++) {
            Term<Kind> sum = src[k];
            for (ptrdiff_t i = n + k; i < length * n; i += n) sum = wrapped<Kind>(sum, src[i]);
            *dst++ = sum;
        }
    }
}

/* Sum rows that are narrower than a vector, column by column. */
template <class Kind>
int sum_few_columns(const bcast_term_rows *rows, const bcast_sink *dst)
{
    for (ptrdiff_t j = 0; j < rows->width; j++) {
        char *to = dst->sum + j * Kind::bytes;
        Term<Kind> sum = dst->mode == BCAST_ADD ? narrow_at<Kind>(to) : 0;

        for (ptrdiff_t turn = 0; turn < rows->turns; turn++) {
            const char *src = rows->src + turn * rows->advance + j * Kind::bytes;
            for (ptrdiff_t i = 0; i < rows->rows; i++)
                sum = wrapped<Kind>(sum, narrow_at<Kind>(src + i % 4 * rows->stride + i / 4 * rows->half_stride));
        }
        set_narrow<Kind>(to, sum);
    }
    return 0;
}

/* The sum of each of the `interleave` items, up to four, that are interleaved in a run. */
template <class Kind>
void sum_few_terms(const char *src, ptrdiff_t length, ptrdiff_t interleave, Term<Kind> *sums)
{
    for (int k = 0; k < 4; k++) sums[k] = 0;

    for (ptrdiff_t i = 0; i < length; i += interleave)
        for (ptrdiff_t k = 0; k < interleave; k++)
            sums[k] = wrapped<Kind>(sums[k], narrow_at<Kind>(src + (i + k) * Kind::bytes));
}

#if BCAST_VECTORS

/* Add a vector's columns of each of `n` rows to `sum`. */
template <class Kind>
BCAST_INLINE Terms<Kind> plus_columns(
    const int n, Terms<Kind> sum, const char *src, ptrdiff_t stride, ptrdiff_t half_stride)
{
    for (int i = 0; i < n; i++) sum = sum + load<Terms<Kind>>(src + i % 4 * stride + i / 4 * half_stride);
    return sum;
}

/* The sums of `n` rows in each turn. The last vector is moved back to end with the rows; it reads its accumulators
   before other vectors change them. */
template <class Kind>
SPECIALISED int sum_n_narrow_rows(const int n, const bcast_term_rows *all, const bcast_sink *sink)
{
    using Vector = Terms<Kind>;
    const bcast_term_rows rows = *all;
    const ptrdiff_t last = rows.width * Kind::bytes - Kind::vector_bytes;
    const char *src = rows.src;
    char *sums = sink->sum;
    bool adds = sink->mode == BCAST_ADD;

    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, src += rows.advance, adds = true) {
        const Vector before = adds ? load<Vector>(sums + last) : Vector{};
        const Vector end = plus_columns<Kind>(n, before, src + last, rows.stride, rows.half_stride);

        for (ptrdiff_t at = 0; at < last; at += Kind::vector_bytes) {
            const Vector sum = adds ? load<Vector>(sums + at) : Vector{};
            store(sums + at, plus_columns<Kind>(n, sum, src + at, rows.stride, rows.half_stride));
        }
        store(sums + last, end);
    }
    return 0;
}

template <class Kind>
int sum_narrow(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if (rows->width < Kind::lanes) return sum_few_columns<Kind>(rows, dst);

    switch (rows->rows) {
    case 1: return sum_n_narrow_rows<Kind>(1, rows, dst);
    case 2: return sum_n_narrow_rows<Kind>(2, rows, dst);
    case 3: return sum_n_narrow_rows<Kind>(3, rows, dst);
    case 4: return sum_n_narrow_rows<Kind>(4, rows, dst);
    case 5: return sum_n_narrow_rows<Kind>(5, rows, dst);
    case 6: return sum_n_narrow_rows<Kind>(6, rows, dst);
    case 7: return sum_n_narrow_rows<Kind>(7, rows, dst);
    case 8: return sum_n_narrow_rows<Kind>(8, rows, dst);
    default: return 0;
    }
}

/* The vectors of a run, four at a time. The last one is moved back to end with the run, and masked to the terms that no
   other vector has. Then the lanes of each interleaved item are added by halves. */
template <class Kind>
BCAST_INLINE void sum_many_terms(const char *src, ptrdiff_t nbytes, ptrdiff_t interleave, Term<Kind> *sums)
{
    using Vector = Terms<Kind>;
    constexpr ptrdiff_t vector_bytes = Kind::vector_bytes;
    const char *end = src + nbytes;
    const ptrdiff_t rest = nbytes % vector_bytes;
    Vector all[4] = {};
    Term<Kind> lanes[Kind::lanes];

    for (; end - src >= 4 * vector_bytes; src += 4 * vector_bytes) {
        __builtin_prefetch(src + BCAST_PAGE / 2);
        __builtin_prefetch(src + BCAST_PAGE / 2 + BCAST_LINE);
        for (int i = 0; i < 4; i++) all[i] = all[i] + load_at<Vector>(src, i);
    }
    for (; end - src >= vector_bytes; src += vector_bytes) all[0] = all[0] + load<Vector>(src);
    if (rest) all[1] = all[1] + (load<Vector>(end - vector_bytes) & load<Vector>(tail_masks.bytes + rest));

    store(lanes, all[0] + (all[1] + (all[2] + all[3])));
    for (int width = Kind::lanes / 2; width >= 4; width /= 2)
        for (int i = 0; i < width; i++) lanes[i] = wrapped<Kind>(lanes[i], lanes[i + width]);
    if (interleave <= 2)
        for (int i = 0; i < 2; i++) lanes[i] = wrapped<Kind>(lanes[i], lanes[i + 2]);
    if (interleave == 1) lanes[0] = wrapped<Kind>(lanes[0], lanes[1]);
    for (ptrdiff_t k = 0; k < interleave; k++) sums[k] = lanes[k];
}

#else

template <class Kind>
int sum_narrow(const bcast_term_rows *rows, const bcast_sink *dst)
{
    return sum_few_columns<Kind>(rows, dst);
}

template <class Kind>
BCAST_INLINE void sum_many_terms(const char *src, ptrdiff_t nbytes, ptrdiff_t interleave, Term<Kind> *sums)
{
    sum_few_terms<Kind>(src, nbytes / Kind::bytes, interleave, sums);
}

#endif

template <class Kind>
int sum_narrow_runs(const bcast_term_runs *all, const bcast_sink *dst)
{
    const bcast_term_runs runs = *all;
    const ptrdiff_t interleave = runs.interleave, nbytes = runs.length * Kind::bytes;
    const bool adds = dst->mode == BCAST_ADD;
    char *to = dst->sum;
    Term<Kind> sums[4];

    for (ptrdiff_t i = 0; i < runs.count; i++) {
        const char *src = runs.src + i * runs.stride;
        if (nbytes >= Kind::vector_bytes) sum_many_terms<Kind>(src, nbytes, interleave, sums);
        else sum_few_terms<Kind>(src, runs.length, interleave, sums);

        for (ptrdiff_t k = 0; k < interleave; k++, to += Kind::bytes) {
            const Term<Kind> before = adds ? narrow_at<Kind>(to) : 0;
            set_narrow<Kind>(to, wrapped<Kind>(before, sums[k]));
        }
    }
    return 0;
}
