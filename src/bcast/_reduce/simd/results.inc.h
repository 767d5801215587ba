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

/* A sum, whose error term has lost so much at most, rounded once; UNSETTLED where that does not settle the last bit. What
   is infinite or NaN stays. The docs, `design/sums.md`, have the proof. */
BCAST_INLINE double settled_sum(double sum, double error, double lost)
{
    const double total = sum + error, rest = BCAST_TWO_SUM_ERROR(sum, error, total);
    const double reach = lost > 0 ? lost * 1.125 + fabs(rest) * 0x1p-52 : 0;
    const bool is_settled = total + (rest + reach) == total && total + (rest - reach) == total;
    const bool is_special = total - total != 0;

    return is_settled || is_special ? total : bcast_f64_of(BCAST_UNSETTLED);
}

/* Sums divided by a whole number, and rounded once likewise. */
BCAST_APART void settle_means(
    double *sum, const double *error, const double *lost, double divisor, ptrdiff_t all)
{
    constexpr int at_once = 16;
    const double inverse = 1 / divisor;

    for (ptrdiff_t n; all > 0; all -= n, sum += n, error += n, lost += n) {
        double total[at_once], mean[at_once], exact[at_once], inexact[at_once], least[at_once], most[at_once];
        n = all < at_once ? all : at_once;

        /* Compilers make vectors of the arithmetic, but not of the choices. */
        for (ptrdiff_t i = 0; i < n; i++) {
            const double all_of_it = sum[i] + error[i], rest = BCAST_TWO_SUM_ERROR(sum[i], error[i], all_of_it);
            const double quotient = all_of_it / divisor, remainder = fma(-quotient, divisor, all_of_it);
            const double all_rest = remainder + rest, about = all_rest * inverse;
            const double more = fma(fma(-about, divisor, all_rest), inverse, about);
            const double reach = lost[i] * 1.125 + fabs(all_rest) * 0x1p-49;
            total[i] = all_of_it;
            mean[i] = quotient;
            exact[i] = quotient + more;
            inexact[i] = fabs(BCAST_TWO_SUM_ERROR(remainder, rest, all_rest)) + fabs(fma(-more, divisor, all_rest));
            least[i] = quotient + (all_rest - reach) * inverse;
            most[i] = quotient + (all_rest + reach) * inverse;
        }

        for (ptrdiff_t i = 0; i < n; i++) {
            const bool is_tiny = fabs(total[i]) < 0x1p-900 && !(total[i] == 0 && lost[i] == 0);     /* and may underflow */
            if (total[i] - total[i] != 0) sum[i] = mean[i];
            else if (is_tiny) sum[i] = bcast_f64_of(BCAST_UNSETTLED);
            else if (least[i] == most[i]) sum[i] = least[i];
            else if (lost[i] == 0 && inexact[i] == 0) sum[i] = exact[i];
            else sum[i] = bcast_f64_of(BCAST_UNSETTLED);
        }
    }
}

/* The same with an odd last bit where it is inexact, so that it is rounded to fewer bits as if only once. */
BCAST_INLINE double settled_odd(double sum, double error, double lost, double divisor)
{
    const double total = sum + error, rest = BCAST_TWO_SUM_ERROR(sum, error, total);
    const double mean = total / divisor, remainder = fma(-mean, divisor, total) + rest;
    const double reach = lost * 1.125 + (divisor == 1 && lost == 0 ? 0 : fabs(rest) * 0x1p-50);
    const uint64_t bits = bcast_f64_bits_of(mean);
    const bool is_tiny = fabs(total) < 0x1p-900 && !(total == 0 && lost == 0) && divisor != 1;

    if (total - total != 0) return mean;
    if (is_tiny || (fabs(remainder) <= reach && reach > 0)) return bcast_f64_of(BCAST_UNSETTLED);
    if (remainder == 0 || bits % 2 == 1) return mean;
    return bcast_f64_of((remainder > 0) == (mean > 0) ? bits + 1 : bits - 1);
}

/* Whether the results are infinite, no number or unsettled. */
BCAST_INLINE uint64_t is_special_result(double result)
{
    return (bcast_f64_bits_of(result) & 0x7fffffffffffffff) + 0x0010000000000000;       /* sets the sign of those */
}

/* Make accumulators results, in place: divided, and rounded once, or to odd. Those that are not settled become
   BCAST_UNSETTLED; tell whether there are such, or infinite ones or NaN. */
int settle(const bcast_settling *how, const bcast_sink *block, ptrdiff_t n)
{
    const double divisor = how->divisor;
    auto *sum = reinterpret_cast<double *>(block->sum);
    const auto *error = reinterpret_cast<const double *>(block->error);
    const auto *lost = reinterpret_cast<const double *>(block->lost);
    uint64_t special = 0;

    if (how->to_odd)
        for (ptrdiff_t i = 0; i < n; i++) sum[i] = settled_odd(sum[i], error[i], lost[i], divisor);
    else if (divisor == 1)
        for (ptrdiff_t i = 0; i < n; i++) sum[i] = settled_sum(sum[i], error[i], lost[i]);
    else
        settle_means(sum, error, lost, divisor, n);

    for (ptrdiff_t i = 0; i < n; i++) special |= is_special_result(sum[i]);
    return special >> 63 != 0;
}

/* Divide sums; and take the roots, if asked to. */
void divide(double *sums, double by, int root, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) sums[i] /= by;
    for (ptrdiff_t i = 0; root && i < n; i++) sums[i] = sqrt(sums[i]);
}
