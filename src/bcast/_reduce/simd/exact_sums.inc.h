/* The kernels of exact sums, of `combine.h`. `target.inc.h` includes this file for each target.

   Each term is added by two_sum, and so is its rounding error to an error term. A bound collects the magnitudes of what
   the error term loses. So the exact sum is `sum` + `error`, but for an unknown part of at most `bound`:

       term  -->  sum  --rounding error-->  error  --rounding error, as a magnitude-->  bound

   A bound of 0 means that nothing is lost, as in most sums of few terms, which are often halfway between two numbers. A
   result is settled if all numbers within the bound round to the same one; others are recomputed from their terms, as
   integers (`exact.h`). So results do not depend on the order of additions, and each target uses all lanes of its
   registers.

   Many terms are rarely halfway. Their error terms are added without exact losses: each addition loses at most 2^-53 of
   the largest error term, which takes 9 operations for each term instead of 14. Most sums of float32 have no rounding
   errors at all, so they are added in the same way, whatever their number.

   Three arrays hold accumulators. Their distances are equal: the bounds follow the error terms. */

template <class V>
struct ExactSum {
    V sum;
    V error;
    V bound;
};

BCAST_INLINE double magnitude(double x) { return fabs(x); }

#if BCAST_VECTORS
BCAST_INLINE Wide magnitude(Wide x) { return wide_of(bits_of(x) & all_but_sign); }

/* The terms some bytes from each of some addresses, one in each lane. Compilers do not make this of a loop. */
template <class Item, int lanes>
BCAST_INLINE Vector<Item, lanes> gathered_items(const char *const *src, ptrdiff_t at)
{
    const Item first = read<Item>(src[0] + at), second = read<Item>(src[1] + at);

    if constexpr (lanes == 2) return Vector<Item, 2>{first, second};
    else return Vector<Item, 4>{first, second, read<Item>(src[2] + at), read<Item>(src[3] + at)};
}

template <class Item, int lanes>
BCAST_INLINE Wide gathered(const char *const *src, ptrdiff_t at)
{
    const auto items = gathered_items<Item, lanes>(src, at);
    return factors_at<Item>(reinterpret_cast<const char *>(&items));
}
#else
template <class Item, int lanes>
BCAST_INLINE Wide gathered(const char *const *src, ptrdiff_t at) { return read<Item>(src[0] + at); }
#endif

/* The terms from an address on, in the lanes of a vector, or a single one. */
template <class Item, class V>
BCAST_INLINE V terms_at(const char *src)
{
    if constexpr (sizeof(V) == sizeof(double)) return read<Item>(src);
    else return factors_at<Item>(src);
}

/* ---- Additions ---- */

/* The rounding error of a sum, `a` + `b` rounded: two_sum. Half of the differences of vectors are products with one, so
   that the units that multiply compute them, which are idle otherwise: 1.25 times as fast. */
template <class V>
BCAST_INLINE V rounding_error(V a, V b, V sum)
{
    if constexpr (wide_lanes == 1 || sizeof(V) == sizeof(double)) {
        return BCAST_TWO_SUM_ERROR(a, b, sum);
    } else {
        const V one = ones<V>(), added = sum * one - a, rest = b - added;
        return (a * one - (sum - added)) * one + rest;
    }
}

template <class V>
BCAST_INLINE void add_exactly(ExactSum<V> *to, V term)
{
    const V sum = to->sum + term, lost = rounding_error(to->sum, term, sum), error = to->error + lost;

    to->bound = to->bound + magnitude(rounding_error(to->error, lost, error));
    to->error = error;
    to->sum = sum;
}

constexpr ptrdiff_t many_terms = SUM_LONG_VECTORS;  /* of a lane: one sum of n in n is halfway, by chance, and redone */

/* Add one of `many` terms, whose error terms have their largest magnitude in place of a bound. */
template <bool many, class V>
BCAST_INLINE void add_one_of(ExactSum<V> *to, V term)
{
    if constexpr (many) {
        const V sum = to->sum + term, error = to->error + rounding_error(to->sum, term, sum), size = magnitude(error);

        to->bound = to->bound > size ? to->bound : size;
        to->error = error;
        to->sum = sum;
    } else {
        add_exactly(to, term);
    }
}

/* The bound of `n` additions to an error term, given its largest magnitude; twice what rounding loses. */
template <class V>
BCAST_INLINE V bound_of(V largest, ptrdiff_t n)
{
    return largest * (static_cast<double>(n) * 0x1p-52);
}

template <class V>
BCAST_INLINE ExactSum<V> merged(ExactSum<V> a, ExactSum<V> b)
{
    add_exactly(&a, b.sum);
    const V error = a.error + b.error;
    return {a.sum, error, a.bound + b.bound + magnitude(rounding_error(a.error, b.error, error))};
}

/* The sum of all lanes. */
BCAST_INLINE ExactSum<double> exact_sum_of_lanes(ExactSum<Wide> lanes)
{
    double sums[wide_lanes], errors[wide_lanes], bounds[wide_lanes];
    write<Wide>(reinterpret_cast<char *>(sums), lanes.sum);
    write<Wide>(reinterpret_cast<char *>(errors), lanes.error);
    write<Wide>(reinterpret_cast<char *>(bounds), lanes.bound);

    ExactSum<double> all = {sums[0], errors[0], bounds[0]};
    for (int i = 1; i < wide_lanes; i++) all = merged(all, {sums[i], errors[i], bounds[i]});
    return all;
}

/* ---- Accumulators and results ---- */

template <class V>
BCAST_INLINE ExactSum<V> exact_at(const bcast_sink *sink, ptrdiff_t i)
{
    const char *error = sink->error + 8 * i;
    return {read<V>(sink->sum + 8 * i), read<V>(error), read<V>(error + (sink->error - sink->sum))};
}

template <class V>
BCAST_INLINE void write_exact(const bcast_sink *sink, ptrdiff_t i, ExactSum<V> sum)
{
    char *error = sink->error + 8 * i;
    write<V>(sink->sum + 8 * i, sum.sum);
    write<V>(error, sum.error);
    write<V>(error + (sink->error - sink->sum), sum.bound);
}

/* Put sums where the sink says, from sum `i` on, in place of what is there. */
template <class V>
BCAST_INLINE void put_exactly(const bcast_sink *dst, ptrdiff_t i, ExactSum<V> sum, V *doubt)
{
    if (dst->mode == BCAST_WRITE) write<V>(dst->sum + 8 * i, sums::settled(sum.sum, sum.error, sum.bound, doubt));
    else write_exact(dst, i, sum);
}

/* Put sums, and add what is there where the sink says so. */
template <class V>
BCAST_INLINE void put_exactly_added(const bcast_sink *dst, ptrdiff_t i, ExactSum<V> sum, V *doubt)
{
    if (dst->mode == BCAST_ADD) sum = merged(exact_at<V>(dst, i), sum);
    put_exactly(dst, i, sum, doubt);
}

BCAST_INLINE int is_doubtful(Wide lanes, double one)
{
    return is_any(!(lanes == Wide{})) || !(one == 0);
}

/* ---- Rows ---- */

/* The sums of some columns of `rows.rows` rows, which begin with accumulators unless these are `first`. */
template <class Item, bool many, class V>
BCAST_INLINE ExactSum<V> sum_of_columns(
    bool first, const bcast_sink *dst, ptrdiff_t column, const bcast_term_rows &rows, const char *src)
{
    const char *at = src + static_cast<ptrdiff_t>(sizeof(Item)) * column;
    ExactSum<V> sum = {};
    V bound = {};

    if (first) sum.sum = terms_at<Item, V>(at);
    else sum = exact_at<V>(dst, column);
    if constexpr (many) {
        bound = sum.bound;
        sum.bound = V{};
    }
    for (ptrdiff_t i = first; i < rows.rows; i++)
        add_one_of<many>(&sum, terms_at<Item, V>(row_at(at, i, rows.stride, rows.half_stride)));
    if constexpr (many) sum.bound = bound + bound_of(sum.bound, rows.rows);
    return sum;
}

template <class Item, bool many>
BCAST_INLINE int sum_some_rows_exactly(const bcast_term_rows *all, const bcast_sink *sink)
{
    const bcast_term_rows rows = *all;
    bcast_sink dst = *sink;
    const char *src = rows.src;
    Wide doubt = {};
    double last_doubt = 0;

    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, src += rows.advance, dst.mode = BCAST_ADD) {
        const bool first = dst.mode != BCAST_ADD;
        ptrdiff_t column = 0;
        for (; column + wide_lanes <= rows.width; column += wide_lanes)
            put_exactly(&dst, column, sum_of_columns<Item, many, Wide>(first, &dst, column, rows, src), &doubt);
        for (; column < rows.width; column++)
            put_exactly(&dst, column, sum_of_columns<Item, many, double>(first, &dst, column, rows, src), &last_doubt);
    }
    return is_doubtful(doubt, last_doubt);
}

template <class Item>
BCAST_APART int sum_rows_exactly(const bcast_term_rows *rows, const bcast_sink *dst)
{
    if constexpr (sizeof(Item) == 8)
        if (rows->turns * rows->rows < many_terms) return sum_some_rows_exactly<Item, false>(rows, dst);
    return sum_some_rows_exactly<Item, true>(rows, dst);
}

/* ---- Runs ---- */

/* The sums of `n` vectors, `vector(i)` each. */
template <class Item, class Vectors>
BCAST_INLINE ExactSum<Wide> sum_of_vectors(ptrdiff_t n, Vectors vector)
{
    ExactSum<Wide> sum = {vector(0), {}, {}};

    if (sizeof(Item) == 8 && n < many_terms) {
        for (ptrdiff_t i = 1; i < n; i++) add_one_of<false>(&sum, vector(i));
    } else {
        for (ptrdiff_t i = 1; i < n; i++) add_one_of<true>(&sum, vector(i));
        sum.bound = bound_of(sum.bound, n);
    }
    return sum;
}

/* The sums of `n` terms in each lane, `step` bytes from one to the next, from as many addresses on. */
template <class Item>
BCAST_INLINE ExactSum<Wide> sum_of_streams(const char *const *src, ptrdiff_t step, ptrdiff_t n)
{
    return sum_of_vectors<Item>(
        n, [&](ptrdiff_t i) BCAST_LAMBDA_INLINE { return gathered<Item, wide_lanes>(src, i * step); });
}

/* The sum of `n` terms, `step` bytes from one to the next. */
template <class Item>
BCAST_APART ExactSum<double> sum_of_run(const char *src, ptrdiff_t step, ptrdiff_t n)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const ptrdiff_t vectors = n / wide_lanes;
    ExactSum<double> sum = {};
    ptrdiff_t done = 0;

    if (vectors > 1) {
        const char *lanes[wide_lanes];
        const auto vector = [&](ptrdiff_t i) BCAST_LAMBDA_INLINE {
            return factors_at<Item>(src + size * wide_lanes * i);
        };
        for (int i = 0; i < wide_lanes; i++) lanes[i] = src + i * step;
        sum = exact_sum_of_lanes(
            step == size ? sum_of_vectors<Item>(vectors, vector)
                         : sum_of_streams<Item>(lanes, wide_lanes * step, vectors));
        done = vectors * wide_lanes;
    } else if (n > 0) {
        sum.sum = read<Item>(src);
        done = 1;
    }
    for (; done < n; done++) add_exactly(&sum, static_cast<double>(read<Item>(src + done * step)));
    return sum;
}

template <class Item>
BCAST_APART int sum_runs_exactly(const bcast_term_runs *all, const bcast_sink *sink)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const bcast_term_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t items = runs.interleave, step = size * items, n = runs.length / items, count = runs.count * items;
    const char *src = runs.src;     /* of the next result */
    Wide doubt = {};
    double last_doubt = 0;
    ptrdiff_t i = 0, item = 0;

    const auto next = [&]() {
        const char *at = src;
        src += size;
        if (++item == items) {
            item = 0;
            src += runs.stride - step;
        }
        return at;
    };
    for (; i + wide_lanes <= count; i += wide_lanes) {
        const char *lanes[wide_lanes];
        for (int lane = 0; lane < wide_lanes; lane++) lanes[lane] = next();
        put_exactly_added(&dst, i, sum_of_streams<Item>(lanes, step, n), &doubt);
    }
    for (; i < count; i++) put_exactly_added(&dst, i, sum_of_run<Item>(next(), step, n), &last_doubt);
    return is_doubtful(doubt, last_doubt);
}

template <class Item>
BCAST_APART int sum_counted_runs_exactly(const bcast_counted_runs *all, const bcast_sink *sink)
{
    constexpr ptrdiff_t size = sizeof(Item);
    const bcast_counted_runs runs = *all;
    const bcast_sink dst = *sink;
    const ptrdiff_t items = runs.interleave, step = size * items;
    const char *src = runs.src;
    double doubt = 0;

    for (ptrdiff_t i = 0; i < runs.count; src += runs.counts[i++] * step)
        for (ptrdiff_t k = 0; k < items; k++)
            put_exactly_added(&dst, i * items + k, sum_of_run<Item>(src + size * k, step, runs.counts[i]), &doubt);
    return is_doubtful(Wide{}, doubt);
}

/* ---- Blocks of accumulators ---- */

inline void combine_exactly(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    ptrdiff_t i = 0;

    for (; i + wide_lanes <= n; i += wide_lanes)
        write_exact(dst, i, merged(exact_at<Wide>(dst, i), exact_at<Wide>(src, i)));
    for (; i < n; i++)
        write_exact(dst, i, merged(exact_at<double>(dst, i), exact_at<double>(src, i)));
}

/* Terms of all other dtypes are packed as float64. */
template <int dtype>
constexpr bcast_sum_kernels exact_kernels_of()
{
    bcast_sum_kernels kernels = {};
    if constexpr (dtype == BCAST_FLOAT32 || dtype == BCAST_FLOAT64) {
        using Item = typename ProductOf<dtype>::Type::Item;
        kernels = sums::kernels_of<f64>();      /* which multiply, and subtract means */
        kernels.reduce_rows = sum_rows_exactly<Item>;
        kernels.reduce_runs = sum_runs_exactly<Item>;
        kernels.reduce_counted_runs = sum_counted_runs_exactly<Item>;
        kernels.combine = combine_exactly;
        kernels.fold = fold_by<ExactSum<double>, exact_at<double>, merged<double>, write_exact<double>>;
    }
    return kernels;
}

constexpr bcast_sum_kernels exact_kernels_by_dtype[] = {BCAST_DTYPES(BCAST_EXACT_KERNELS)};
