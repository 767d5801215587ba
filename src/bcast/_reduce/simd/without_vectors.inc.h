/* The kernels of sums where a compiler has no vectors of its own: plain loops. */

template <class Kind>
int sum_rows(const bcast_term_rows *rows, const bcast_sink *dst)
{
    return sum_narrow_rows<Kind>(rows, dst);
}

/* Run number `i`, of `length` turns, as narrow rows. */
template <class Kind>
BCAST_INLINE int sum_run(const char *src, ptrdiff_t length, ptrdiff_t interleave, const bcast_sink *dst, ptrdiff_t i)
{
    const ptrdiff_t at = i * interleave * static_cast<ptrdiff_t>(sizeof(Sum<Kind>)), stride = interleave * Kind::bytes;
    const bcast_term_rows rows = {src, 1, 0, length, stride, 4 * stride, interleave};
    bcast_sink sink = *dst;

    sink.sum += at;
    if constexpr (Kind::compensated) sink.error += at, sink.lost += at;
    return sum_narrow_rows<Kind>(&rows, &sink);
}

template <class Kind>
int sum_runs(const bcast_term_runs *runs, const bcast_sink *dst)
{
    const ptrdiff_t interleave = runs->interleave;

    for (ptrdiff_t i = 0; i < runs->count; i++)
        if (sum_run<Kind>(runs->src + i * runs->stride, runs->length / interleave, interleave, dst, i)) return BCAST_NOT_WRITTEN;
    return 0;
}

template <class Kind>
int sum_counted_runs(const bcast_counted_runs *runs, const bcast_sink *dst)
{
    const char *src = runs->src;

    for (ptrdiff_t i = 0; i < runs->count; src += runs->counts[i++] * runs->interleave * Kind::bytes)
        if (sum_run<Kind>(src, runs->counts[i], runs->interleave, dst, i)) return BCAST_NOT_WRITTEN;
    return 0;
}

/* Add `n` accumulators to as many others. */
template <class Kind>
void add_accumulators(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) add_accumulator<Kind>(place_in<Kind>(dst, i), place_in<Kind>(src, i));
}

/* Add terms to an accumulator, its error term and the bound of what that has lost: `to`. */
void add_exactly(const double *terms, ptrdiff_t n, double *to)
{
    for (ptrdiff_t i = 0; i < n; i++) add_term<f64>({to, to + 1, to + 2}, terms[i]);
}

template <class Kind>
void multiply_rows(const bcast_term_products *rows, Sum<Kind> *dst)
{
    multiply_narrow_rows<Kind>(rows, dst);
}

template <class Kind>
void multiply_run(const char *a, const char *b, ptrdiff_t length, ptrdiff_t, Sum<Kind> *dst)
{
    constexpr int lanes = Kind::lanes;

    Sum<Kind> lost = 0;     /* of which nothing is made: products are rounded */

    memset(dst, 0, (Kind::compensated ? 2 : 1) * lanes * sizeof(Sum<Kind>));
    for (ptrdiff_t i = 0; i < length; i++) {
        const Place<Kind> to = {&dst[i % lanes], &dst[lanes + i % lanes], &lost};
        add_product<Kind>(to, a + i * Kind::bytes, b + i * Kind::bytes);
    }
}
