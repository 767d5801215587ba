/* The kernels of sums for compilers without vector types: plain loops. */

template <class Kind>
int sum_rows(const bcast_term_rows *rows, const bcast_sink *dst)
{
    return sum_narrow_rows<Kind>(rows, dst);
}

/* Run number `i`, of `length` turns, as rows of one turn each. */
template <class Kind>
BCAST_INLINE int sum_run(const char *src, ptrdiff_t length, ptrdiff_t interleave, const bcast_sink *dst, ptrdiff_t i)
{
    const ptrdiff_t at = i * interleave * static_cast<ptrdiff_t>(sizeof(Sum<Kind>)), stride = interleave * Kind::bytes;
    const bcast_term_rows rows = {src, 1, 0, length, stride, 4 * stride, interleave};
    const bcast_sink sink = {dst->mode, dst->sum + at, Kind::compensated ? dst->error + at : nullptr};

    return sum_narrow_rows<Kind>(&rows, &sink);
}

template <class Kind>
int sum_runs(const bcast_term_runs *runs, const bcast_sink *dst)
{
    const ptrdiff_t interleave = runs->interleave;

    for (ptrdiff_t i = 0; i < runs->count; i++)
        if (sum_run<Kind>(runs->src + i * runs->stride, runs->length / interleave, interleave, dst, i)) return 1;
    return 0;
}

template <class Kind>
int sum_counted_runs(const bcast_counted_runs *runs, const bcast_sink *dst)
{
    const char *src = runs->src;

    for (ptrdiff_t i = 0; i < runs->count; src += runs->counts[i++] * runs->interleave * Kind::bytes)
        if (sum_run<Kind>(src, runs->counts[i], runs->interleave, dst, i)) return 1;
    return 0;
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

    memset(dst, 0, (Kind::compensated ? 2 : 1) * lanes * sizeof(Sum<Kind>));
    for (ptrdiff_t i = 0; i < length; i++)
        add_product<Kind>(&dst[i % lanes], &dst[lanes + i % lanes], a + i * Kind::bytes, b + i * Kind::bytes);
}
