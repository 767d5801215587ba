/* From accumulators to results: add error terms, compute means and roots, store items. */

/* Store the low bytes of integers, or floats rounded once. Compilers vectorise loops over contiguous results. Strides
   come one by one, so that compilers recognise the constant ones. */
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

/* Bits whose sign is set if a number is infinite or NaN. */
BCAST_INLINE uint64_t special_bits(double x)
{
    return (bcast_f64_bits_of(x) & 0x7fffffffffffffff) + 0x0010000000000000;
}

/* Add each error term to its sum; return whether a sum is infinite or NaN. */
int add_errors(double *sum, const double *error, ptrdiff_t n)
{
    uint64_t special = 0;

    for (ptrdiff_t i = 0; i < n; i++) {
        sum[i] += error[i];
        special |= special_bits(sum[i]);
    }
    return special >> 63 != 0;
}

/* Divide sums; if `root`, compute the roots of the quotients. */
void divide(double *sums, double by, int root, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) sums[i] /= by;
    for (ptrdiff_t i = 0; root && i < n; i++) sums[i] = sqrt(sums[i]);
}

/* ---- Exact sums ---- */

/* Sums rounded once: numbers or vectors. Lanes of `doubt` become positive or NaN if the bound does not settle the
   result, or if the result is not finite. The bound is itself a rounded sum, and the addition of `rest` rounds as well,
   so both have some slack. `docs/design/sums.md` has the proof. */
template <class V>
BCAST_INLINE V settled(V sum, V error, V bound, V *doubt)
{
    const V total = sum + error, rest = BCAST_TWO_SUM_ERROR(sum, error, total), none = V{};
    const V slack = (rest > none ? rest : none - rest) * 0x1p-52, reach = bound > none ? bound * 1.125 + slack : none;

    *doubt = *doubt + ((total + (rest + reach)) - (total + (rest - reach)));
    return total;
}

/* A sum rounded once, or NaN. */
BCAST_INLINE double settled_or_nan(double sum, double error, double bound)
{
    double doubt = 0;
    const double total = settled(sum, error, bound, &doubt);

    return doubt == 0 ? total : NAN;
}

/* Round each sum once, in place; sums that are not settled become NaN. */
BCAST_APART void settle_sums(double *sum, const double *error, const double *bound, ptrdiff_t n)
{
    ptrdiff_t i = 0;

#if BCAST_VECTORS
    constexpr int lanes = register_bytes / 8;
    using Lanes = Vector<double, lanes>;
    using Bits = Vector<uint64_t, lanes>;
    for (; i + lanes <= n; i += lanes) {
        Lanes doubt = {};
        const Lanes total = settled(load<Lanes>(sum + i), load<Lanes>(error + i), load<Lanes>(bound + i), &doubt);
        store(sum + i, bits_as<Lanes>(bits_as<Bits>(total) | ~bits_as<Bits>(doubt == Lanes{})));
    }
#endif
    for (; i < n; i++) sum[i] = settled_or_nan(sum[i], error[i], bound[i]);
}

/* Divide sums by an integer and round once, in place. */
BCAST_APART void settle_means(double *sum, const double *error, const double *bound, double divisor, ptrdiff_t all)
{
    constexpr int at_once = 16;
    const double inverse = 1 / divisor;

    for (ptrdiff_t n; all > 0; all -= n, sum += n, error += n, bound += n) {
        double total[at_once], exact[at_once], inexact[at_once], least[at_once], most[at_once];
        n = all < at_once ? all : at_once;

        /* Compilers vectorise the arithmetic, but not the choices. */
        for (ptrdiff_t i = 0; i < n; i++) {
            const double whole = sum[i] + error[i], rest = BCAST_TWO_SUM_ERROR(sum[i], error[i], whole);
            const double quotient = whole / divisor, remainder = fma(-quotient, divisor, whole);
            const double all_rest = remainder + rest, about = all_rest * inverse;
            const double more = fma(fma(-about, divisor, all_rest), inverse, about);
            const double reach = bound[i] * 1.125 + fabs(all_rest) * 0x1p-49;
            total[i] = whole;
            exact[i] = quotient + more;
            inexact[i] = fabs(BCAST_TWO_SUM_ERROR(remainder, rest, all_rest)) + fabs(fma(-more, divisor, all_rest));
            least[i] = quotient + (all_rest - reach) * inverse;
            most[i] = quotient + (all_rest + reach) * inverse;
        }

        for (ptrdiff_t i = 0; i < n; i++) {
            const bool may_underflow = fabs(total[i]) < 0x1p-900 && !(total[i] == 0 && bound[i] == 0);
            if (may_underflow) sum[i] = NAN;
            else if (least[i] == most[i]) sum[i] = least[i];
            else sum[i] = bound[i] == 0 && inexact[i] == 0 ? exact[i] : NAN;
        }
    }
}

/* A number rounded to fewer bits; `half` is half of the last place of these. */
BCAST_INLINE uint64_t rounded_bits(double x, uint64_t half)
{
    return (bcast_f64_bits_of(x) + half) & ~(2 * half - 1);
}

/* Whether sums are exact as they are: of few terms, they often are. */
BCAST_INLINE bool are_exact(const double *error, const double *bound, ptrdiff_t n)
{
    uint64_t bits = 0;

    for (ptrdiff_t i = 0; i < n; i++) bits |= bcast_f64_bits_of(error[i]) | bcast_f64_bits_of(bound[i]);
    return bits == 0;
}

/* Divide sums in place, for results that are rounded again to fewer bits: all numbers within the bound must round to
   the same result. The slack is far greater than rounding errors here, and far smaller than the last places of results.
   */
BCAST_APART void settle_narrow(
    const bcast_settling *how, double *sum, const double *error, const double *bound, ptrdiff_t all)
{
    constexpr int at_once = 16;
    const double divisor = how->divisor, inverse = 1 / divisor, least_normal = how->least_normal;
    const uint64_t half = static_cast<uint64_t>(1) << (52 - how->digits);

    for (ptrdiff_t n; all > 0; all -= n, sum += n, error += n, bound += n) {
        uint64_t is_settled[at_once];
        double result[at_once];
        n = all < at_once ? all : at_once;
        if (divisor == 1 && are_exact(error, bound, n)) {
            for (ptrdiff_t i = 0; i < n; i++) sum[i] += error[i];       /* of negative zeros, 0 */
            continue;
        }

        for (ptrdiff_t i = 0; i < n; i++) {
            const double whole = sum[i] + error[i], rest = BCAST_TWO_SUM_ERROR(sum[i], error[i], whole);
            const double quotient = whole / divisor, remainder = fma(-quotient, divisor, whole);
            const double more = (remainder + rest) * inverse;
            const double reach = bound[i] * 1.125 * inverse + fabs(quotient) * 0x1p-49;
            const uint64_t low = rounded_bits(quotient + (more - reach), half);
            const uint64_t high = rounded_bits(quotient + (more + reach), half);

            result[i] = quotient;
            is_settled[i] = ((low == high) & (fabs(quotient) >= least_normal))
                | ((bound[i] == 0) & (rest == 0) & (remainder == 0));
        }
        for (ptrdiff_t i = 0; i < n; i++) sum[i] = is_settled[i] ? result[i] : NAN;
    }
}

/* Turn accumulators of exact sums into results, under the contract of `sum.h`. */
int settle(const bcast_settling *how, const bcast_sink *block, ptrdiff_t n)
{
    const double divisor = how->divisor;
    auto *sum = reinterpret_cast<double *>(block->sum);
    const auto *error = reinterpret_cast<const double *>(block->error), *bound = error + (error - sum);
    uint64_t special = 0;

    if (how->digits < 53)
        settle_narrow(how, sum, error, bound, n);
    else if (divisor == 1)
        settle_sums(sum, error, bound, n);
    else
        settle_means(sum, error, bound, divisor, n);

    for (ptrdiff_t i = 0; i < n; i++) special |= special_bits(sum[i]);
    return special >> 63 != 0;
}

/* ---- Exact norms and variances ---- */

constexpr int spreads_at_once = 16;

/* Numbers that are sums of two parts, and bounds of what they lack. */
struct Approximations {
    double total[spreads_at_once];
    double rest[spreads_at_once];
    double reach[spreads_at_once];
};

/* Sums of squares: norms are their roots. */
BCAST_INLINE void take_squares(Approximations *to, const bcast_bounded_sums *from, ptrdiff_t begin, ptrdiff_t n)
{
    const double *squares = from->squares + begin, *errors = squares + from->apart, *bounds = errors + from->apart;

    for (ptrdiff_t i = 0; i < n; i++) {
        to->total[i] = squares[i];
        to->rest[i] = errors[i];
        to->reach[i] = bounds[i] * 1.125;
    }
}

/* Sums of squares, times the number of items, less the squared sums. If everything is exact, nothing is added to the
   bounds. The docs, `design/sums.md`, have the proof, here and below. */
BCAST_INLINE void subtract_squared_sums(
    const bcast_spreading *how, Approximations *to, const bcast_bounded_sums *from, ptrdiff_t begin, ptrdiff_t n)
{
    const double *squares = from->squares + begin, *errors = squares + from->apart, *bounds = errors + from->apart;
    const double count = how->count;
    double sizes[spreads_at_once], inexact[spreads_at_once];

    for (ptrdiff_t i = 0; i < n; i++) {
        const double product = count * squares[i], lost = fma(count, squares[i], -product);

        to->total[i] = product;
        to->rest[i] = fma(count, errors[i], lost);
        to->reach[i] = count * bounds[i];
        sizes[i] = product;
        inexact[i] = fabs(lost) + fabs(errors[i]);
    }
    for (int part = 0; part < how->parts; part++) {
        const double *sums = from->sums + 3 * part * from->apart + begin, *sum_errors = sums + from->apart;
        const double *sum_bounds = sum_errors + from->apart;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double sum = sums[i], error = sum_errors[i], bound = sum_bounds[i];
            const double square = sum * sum, lost = fma(sum, sum, -square), more = fma(2 * sum, error, lost);
            const double total = to->total[i] - square, rest = BCAST_TWO_SUM_ERROR(to->total[i], -square, total);

            to->total[i] = total;
            to->rest[i] = (to->rest[i] - more) + rest;
            to->reach[i] += bound * (2 * fabs(sum) + 3 * fabs(error) + bound);
            sizes[i] += square;
            inexact[i] += fabs(lost) + fabs(error) + (how->parts > 1 ? fabs(rest) : 0);
        }
    }
    for (ptrdiff_t i = 0; i < n; i++)
        to->reach[i] = to->reach[i] * 1.25 + (inexact[i] == 0 ? 0 : sizes[i] * 0x1p-100);
}

/* Divide numbers: each becomes a rounded quotient, what it lacks, and a bound of what is lacking then. */
BCAST_INLINE void divide_approximations(const bcast_spreading *how, Approximations *of, ptrdiff_t n)
{
    const double divisor = how->divisor, divisor_rest = how->rest;

    for (ptrdiff_t i = 0; i < n; i++) {
        const double total = of->total[i] + of->rest[i], rest = BCAST_TWO_SUM_ERROR(of->total[i], of->rest[i], total);
        const double quotient = total / divisor, remainder = fma(-quotient, divisor, total);

        of->total[i] = quotient;
        of->rest[i] = fma(-quotient, divisor_rest, remainder + rest) / divisor;
        of->reach[i] = of->reach[i] / divisor + fabs(quotient) * 0x1p-100;
    }
}

/* The same for square roots, by Newton's step. */
BCAST_INLINE void take_roots(Approximations *of, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double square = of->total[i], root = sqrt(square), twice = square > 0 ? 2 * root : 1;
        const double remainder = fma(-root, root, square);

        of->total[i] = root;
        of->rest[i] = (remainder + of->rest[i]) / twice;
        of->reach[i] = of->reach[i] / twice + root * 0x1p-100;
    }
}

void settle_spreads(const bcast_spreading *how, const bcast_bounded_sums *from, double *results, ptrdiff_t all)
{
    constexpr double least_square = 0x1p-850, most_square = 0x1p900, least = 0x1p-900;
    const uint64_t half = how->digits < 53 ? static_cast<uint64_t>(1) << (52 - how->digits) : 0;

    for (ptrdiff_t begin = 0, n; begin < all; begin += n) {
        Approximations found;
        uint64_t is_settled[spreads_at_once];
        n = all - begin < spreads_at_once ? all - begin : spreads_at_once;

        if (how->parts == 0) {
            take_squares(&found, from, begin, n);
        } else {
            subtract_squared_sums(how, &found, from, begin, n);
            divide_approximations(how, &found, n);
        }
        for (ptrdiff_t i = 0; i < n; i++) {     /* of results that are too small for exact remainders */
            const double square = from->squares[begin + i], total = found.total[i];
            const bool is_usual = (square >= least_square) & (square <= most_square) & (total >= least);
            is_settled[i] = is_usual | ((total == 0) & (found.rest[i] == 0) & (found.reach[i] == 0));
        }
        if (how->root) take_roots(&found, n);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double total = found.total[i], reach = found.reach[i] + (half ? total * 0x1p-49 : 0);
            const double low = total + (found.rest[i] - reach), high = total + (found.rest[i] + reach);
            const bool is_same = half ? (rounded_bits(low, half) == rounded_bits(high, half))
                    & ((low >= how->least_normal) | (high == 0)) : low == high;
            results[begin + i] = is_settled[i] & is_same ? low : static_cast<double>(NAN);
        }
    }
}
