/* From accumulators to results: error terms are added, means and roots taken, items stored. */

/* Integers' low bytes, or floats rounded once. Results side by side are what compilers make vectors of. */
BCAST_INLINE void store_items(
    const int dtype, const int from, const ptrdiff_t stride, const ptrdiff_t sum_stride, char *dst, const char *sums,
    ptrdiff_t n)
{
    ptrdiff_t i = 0;

#if BCAST_VECTORS
    for (; dtype == BCAST_FLOAT16 && stride == 2 && sum_stride == 8 && i + 4 <= n; i += 4)
        store(dst + 2 * i, halves_of(load<Vector<double, 4>>(sums + 8 * i)));
#endif
    for (const int is_float = bcast_dtypes[dtype].is_float; i < n; i++)
        bcast_write(dtype, is_float, dst + i * stride, bcast_read(from, 0, sums + i * sum_stride));
}

/* Accumulators of one integer dtype, or the bits of floats, as items of another. */
template <int dtype, int from>
BCAST_INLINE void store_as(const bcast_results *results, const char *sums, ptrdiff_t n)
{
    const ptrdiff_t size = bcast_dtypes[dtype].size, sum_size = bcast_dtypes[from].size;

    if (results->stride == size && results->sum_stride == sum_size)
        store_items(dtype, from, size, sum_size, results->dst, sums, n);
    else
        store_items(dtype, from, results->stride, results->sum_stride, results->dst, sums, n);
}

BCAST_ALIGNED void store_results(const bcast_results *results, const void *all, ptrdiff_t n)
{
    const char *sums = static_cast<const char *>(all);
    const bool is_byte = bcast_dtypes[results->dtype].size == 1;

    if (results->sum_size == 1) {
        store_as<BCAST_UINT8, BCAST_UINT8>(results, sums, n);
    } else if (results->sum_size == 2) {
        if (is_byte) store_as<BCAST_UINT8, BCAST_UINT16>(results, sums, n);
        else store_as<BCAST_UINT16, BCAST_UINT16>(results, sums, n);
    } else if (results->sum_size == 4) {
        if (is_byte) store_as<BCAST_UINT8, BCAST_UINT32>(results, sums, n);
        else store_as<BCAST_UINT32, BCAST_UINT32>(results, sums, n);
    } else {
        switch (results->dtype) { BCAST_DTYPES(BCAST_CASE_STORE) }
    }
}

/* Add each error term to its sum; tell whether one of the sums is infinite or no number. */
int add_errors(double *sum, const double *error, ptrdiff_t n)
{
    uint64_t special = 0;

    for (ptrdiff_t i = 0; i < n; i++) {
        sum[i] += error[i];
        special |= (bcast_f64_bits_of(sum[i]) & 0x7fffffffffffffff) + 0x0010000000000000;   /* sets the sign of those */
    }
    return special >> 63 != 0;
}

/* Divide sums; and take the roots, if asked to. */
void divide(double *sums, double by, int root, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) sums[i] /= by;
    for (ptrdiff_t i = 0; root && i < n; i++) sums[i] = sqrt(sums[i]);
}
