/* The kernels of short vectors: `short_vectors.h` is their contract. They read vectors as columns, one vector in each
   lane of a register. Shuffles turn dense vectors into columns. The last few vectors are read one by one. */

#if BCAST_VECTORS
template <class Item> using Lanes = Vector<Item, BCAST_SHORT_LANES>;
#else
template <class Item> using Lanes = Item;
#endif

template <class Item> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;
template <> constexpr bool is_float<double> = true;

/* ---- Functions for single items and for lanes ---- */

BCAST_INLINE double widened_lanes(float x) { return x; }
BCAST_INLINE double widened_lanes(double x) { return x; }
BCAST_INLINE uint64_t widened_lanes(uint64_t x) { return x; }

BCAST_INLINE float narrowed_lanes(float, double x) { return static_cast<float>(x); }
BCAST_INLINE double narrowed_lanes(double, double x) { return x; }
BCAST_INLINE uint64_t narrowed_lanes(uint64_t, uint64_t x) { return x; }

BCAST_INLINE double root_of_lanes(double x) { return __builtin_sqrt(x); }

/* All bits, or none if x is infinite or NaN. This compares no floats, because that could set the CPU's flags. */
BCAST_INLINE uint64_t finite_mask(double x)
{
    return (bcast_f64_bits_of(x) >> 52 & 0x7ff) == 0x7ff ? 0 : ~static_cast<uint64_t>(0);
}

BCAST_INLINE double masked(double x, uint64_t mask) { return bcast_f64_of(bcast_f64_bits_of(x) & mask); }

/* One item in each lane. */
template <class V, class Item>
BCAST_INLINE V spread(Item x)
{
#if BCAST_VECTORS
    if constexpr (is_two<V>) return {spread<decltype(V::low)>(x), spread<decltype(V::low)>(x)};
    else if constexpr (sizeof(V) > sizeof x) return x - V{};       /* a difference keeps the sign of a zero */
    else
#endif
    return x;
}

template <class Item>
BCAST_INLINE Item load_item(const char *at)
{
    Item item;
    memcpy(&item, at, sizeof item);
    return item;
}

/* Read a vector's items, or write them. */
template <class Item>
BCAST_INLINE void load_dense(const int n, const char *src, Item *items)
{
    memcpy(items, src, n * sizeof *items);
}

template <class Item>
BCAST_INLINE void store_dense(const int n, char *dst, const Item *items)
{
    memcpy(dst, items, n * sizeof *items);
}

#if BCAST_VECTORS

/* ---- Lanes ---- */

BCAST_INLINE Lanes<double> widened_lanes(Lanes<float> x) { return doubles(x); }
BCAST_INLINE Lanes<double> widened_lanes(Lanes<double> x) { return x; }
BCAST_INLINE Lanes<uint64_t> widened_lanes(Lanes<uint64_t> x) { return x; }

BCAST_INLINE Lanes<float> narrowed_lanes(Lanes<float>, Lanes<double> x) { return floats(x); }
BCAST_INLINE Lanes<double> narrowed_lanes(Lanes<double>, Lanes<double> x) { return x; }
BCAST_INLINE Lanes<uint64_t> narrowed_lanes(Lanes<uint64_t>, Lanes<uint64_t> x) { return x; }

BCAST_INLINE Lanes<double> root_of_lanes(Lanes<double> x) { return roots(x); }

template <class V>
BCAST_INLINE auto finite_mask_of(V x)
{
    if constexpr (is_two<V>) {
        using Half = decltype(finite_mask_of(x.low));
        return Two<Half>{finite_mask_of(x.low), finite_mask_of(x.high)};
    } else {
        using Bits = decltype(x < x);
        constexpr long long infinity = 0x7ff0000000000000;
        return (Bits) ((((Bits) x) & infinity) != infinity);
    }
}

template <class V, class Mask>
BCAST_INLINE V masked_lanes(V x, Mask mask)
{
    if constexpr (is_two<V>) return {masked_lanes(x.low, mask.low), masked_lanes(x.high, mask.high)};
    else return (V) ((Mask) x & mask);
}

BCAST_INLINE auto finite_mask(Lanes<double> x) { return finite_mask_of(x); }
template <class Mask> BCAST_INLINE Lanes<double> masked(Lanes<double> x, Mask mask) { return masked_lanes(x, mask); }

/* Four dense vectors as columns; `dense.inc.h` has a picture of three items. */
template <class V>
BCAST_INLINE void load_columns(const int n, const char *src, V *items)
{
    const V a = load_at<V>(src, 0), b = load_at<V>(src, 1), c = load_at<V>(src, n - 1);

    if (n == 2) {
        items[0] = shuffled<0, 2, 4, 6>(a, b);
        items[1] = shuffled<1, 3, 5, 7>(a, b);
    } else if (n == 3) {
        const V first = shuffled<0, 5, 2, 3>(shuffled<0, 1, 6, 3>(a, b), c);
        const V second = shuffled<0, 1, 6, 3>(shuffled<0, 5, 2, 3>(b, a), c);
        const V third = shuffled<0, 1, 6, 3>(shuffled<0, 5, 2, 3>(c, b), a);
        items[0] = shuffled<0, 3, 2, 1>(first, first);
        items[1] = shuffled<1, 0, 3, 2>(second, second);
        items[2] = shuffled<2, 1, 0, 3>(third, third);
    } else {
        const V d = load_at<V>(src, 2);     /* the third vector; c is the fourth */
        const V ab = even(a, b), dc = even(d, c), ab_odd = odd(a, b), dc_odd = odd(d, c);
        items[0] = lower(ab, dc);
        items[1] = lower(ab_odd, dc_odd);
        items[2] = upper(ab, dc);
        items[3] = upper(ab_odd, dc_odd);
    }
}

/* Four columns as dense vectors. */
template <class V>
BCAST_INLINE void store_columns(const int n, char *dst, const V *items)
{
    if (n == 2) {
        store_at(dst, 0, shuffled<0, 4, 1, 5>(items[0], items[1]));
        store_at(dst, 1, shuffled<2, 6, 3, 7>(items[0], items[1]));
    } else if (n == 3) {
        const V first = shuffled<0, 3, 2, 1>(items[0], items[0]);
        const V second = shuffled<1, 0, 3, 2>(items[1], items[1]);
        const V third = shuffled<2, 1, 0, 3>(items[2], items[2]);
        store_at(dst, 0, shuffled<0, 1, 6, 3>(shuffled<0, 5, 2, 3>(first, second), third));
        store_at(dst, 1, shuffled<0, 1, 6, 3>(shuffled<0, 5, 2, 3>(second, third), first));
        store_at(dst, 2, shuffled<0, 1, 6, 3>(shuffled<0, 5, 2, 3>(third, first), second));
    } else {
        const V ab = lower(items[0], items[2]), ab_odd = lower(items[1], items[3]);
        const V dc = upper(items[0], items[2]), dc_odd = upper(items[1], items[3]);
        store_at(dst, 0, even(ab, ab_odd));
        store_at(dst, 1, odd(ab, ab_odd));
        store_at(dst, 2, even(dc, dc_odd));
        store_at(dst, 3, odd(dc, dc_odd));
    }
}

#endif

/* ---- Vectors from number `i` on, one in each lane of V ---- */

template <class Item>
constexpr ptrdiff_t short_lanes = sizeof(Lanes<Item>) / sizeof(Item);

template <class V, class Item>
constexpr bool is_item = sizeof(V) == sizeof(Item);

template <class V, class Item>
BCAST_INLINE void load_vectors(const int n, const bcast_short_vectors &src, ptrdiff_t i, V *items)
{
    const ptrdiff_t at = i * src.advance;

    if (src.dense) {
#if BCAST_VECTORS
        if constexpr (!is_item<V, Item>) load_columns(n, src.items[0] + at, items);
        else
#endif
        load_dense<Item>(n, src.items[0] + at, items);
        return;
    }
    for (int k = 0; k < n; k++) {
#if BCAST_VECTORS
        if constexpr (!is_item<V, Item>) items[k] = load<V>(src.items[k] + at);
        else
#endif
        items[k] = load_item<Item>(src.items[k] + at);
    }
}

template <class V, class Item>
BCAST_INLINE void store_vectors(const int n, const bcast_short_vectors &dst, ptrdiff_t i, const V *items)
{
    const ptrdiff_t at = i * dst.advance;

    if (n > 1 && dst.dense) {
#if BCAST_VECTORS
        if constexpr (!is_item<V, Item>) store_columns(n, dst.items[0] + at, items);
        else
#endif
        store_dense<Item>(n, dst.items[0] + at, items);
        return;
    }
    for (int k = 0; k < n; k++) {
#if BCAST_VECTORS
        if constexpr (!is_item<V, Item>) store(dst.items[k] + at, items[k]);
        else
#endif
        memcpy(dst.items[k] + at, &items[k], sizeof(Item));
    }
}

/* Run `step` for one vector in each lane of a register at a time, then for each of the last vectors. */
#define BCAST_SHORT_LOOP(Item, n, step)                                                         \
    ptrdiff_t i = 0;                                                                            \
    for (; i + short_lanes<Item> <= n; i += short_lanes<Item>) step(Lanes<Item>(), i);          \
    if constexpr (short_lanes<Item> > 1)                                                        \
        for (; i < n; i++) step(Item(), i);

/* ---- Arithmetic ---- */

/* The sum of products, given in the wide type. An error term that is infinite or NaN is ignored, because the sum is
   infinite. A sum of zero is +0, like all sums that begin with 0. */
template <class Item, class Wide>
BCAST_INLINE Wide sum_of_products(const int n, const Wide *products)
{
    Wide sum = products[0] + products[1] + Wide{};
    for (int k = 2; k < n; k++) sum = sum + products[k];

    if constexpr (sizeof(Item) == 8 && is_float<Item>) {
        if (n > 2) {
            const auto finite = finite_mask(sum);
            Wide before = masked(products[0], finite), error = {};
            for (int k = 1; k < n; k++) {
                const Wide term = masked(products[k], finite), after = before + term;
                error = error + BCAST_TWO_SUM_ERROR(before, term, after);
                before = after;
            }
            sum = sum + error;
        }
    }
    return sum;
}

template <class Item, class V>
BCAST_INLINE V product_of(V a, V b)
{
    if constexpr (is_float<Item>) return rounded(a * b);
    else return a * b;
}

template <class Item, class V>
BCAST_INLINE auto dot(const int n, const V *a, const V *b)
{
    using Wide = decltype(widened_lanes(a[0]));
    Wide products[BCAST_SHORT_MOST];

    for (int k = 0; k < n; k++) products[k] = product_of<Item>(widened_lanes(a[k]), widened_lanes(b[k]));
    return sum_of_products<Item>(n, products);
}

template <class Item, int n>
void dot_vectors(const bcast_short_call *all)
{
    const bcast_short_call call = *all;
    const auto step = [&](auto like, ptrdiff_t i) BCAST_LAMBDA_INLINE {
        using V = decltype(like);
        V a[n], b[n];

        load_vectors<V, Item>(n, call.a, i, a);
        load_vectors<V, Item>(n, call.b, i, b);
        const V sum = narrowed_lanes(like, dot<Item>(n, a, b));
        store_vectors<V, Item>(1, call.dst, i, &sum);
    };
    BCAST_SHORT_LOOP(Item, call.count, step)
}

template <class Item>
void cross_vectors(const bcast_short_call *all)
{
    const bcast_short_call call = *all;
    const auto step = [&](auto like, ptrdiff_t i) BCAST_LAMBDA_INLINE {
        using V = decltype(like);
        V a[3], b[3];

        load_vectors<V, Item>(3, call.a, i, a);
        load_vectors<V, Item>(3, call.b, i, b);
        const V results[3] = {
            product_of<Item>(a[1], b[2]) - product_of<Item>(a[2], b[1]),
            product_of<Item>(a[2], b[0]) - product_of<Item>(a[0], b[2]),
            product_of<Item>(a[0], b[1]) - product_of<Item>(a[1], b[0]),
        };
        store_vectors<V, Item>(3, call.dst, i, results);
    };
    BCAST_SHORT_LOOP(Item, call.count, step)
}

/* The product of a matrix of `rows` rows and each vector. */
template <class Item, int n, int rows>
void transform_vectors(const bcast_short_call *all)
{
    const bcast_short_call call = *all;
    const Item *matrix = static_cast<const Item *>(call.matrix);
    using WideItem = decltype(widened_lanes(Item()));
    using WideLanes = decltype(widened_lanes(Lanes<Item>()));
    WideLanes factors[rows * n];
    WideItem items[rows * n];

    for (int k = 0; k < rows * n; k++) {
        items[k] = widened_lanes(load_item<Item>(reinterpret_cast<const char *>(matrix + k)));
        factors[k] = spread<WideLanes>(items[k]);
    }

    const auto step = [&](auto like, ptrdiff_t i) BCAST_LAMBDA_INLINE {
        using V = decltype(like);
        using Wide = decltype(widened_lanes(like));
        V a[n], results[rows];
        Wide products[n];
        load_vectors<V, Item>(n, call.a, i, a);
        for (int row = 0; row < rows; row++) {
            for (int k = 0; k < n; k++) {
                if constexpr (is_item<V, Item>) products[k] = product_of<Item>(widened_lanes(a[k]), items[row * n + k]);
                else products[k] = product_of<Item>(widened_lanes(a[k]), factors[row * n + k]);
            }
            results[row] = narrowed_lanes(like, sum_of_products<Item>(n, products));
        }
        store_vectors<V, Item>(rows, call.dst, i, results);
    };
    BCAST_SHORT_LOOP(Item, call.count, step)
}

/* ---- Norms ---- */

/* Whether a sum of squares is so large or so small that it may be wrong. Those of float32 never are. */
BCAST_INLINE bool is_unsure(double sum) { return !(sum > 0x1p-900 && sum < 0x1p1000); }

/* The norm of a vector of float64, given the sum of squares, which may have overflowed or lost digits. */
template <class Item>
Item scaled_norm(const int n, const Item *items, double sum)
{
    double most = 0, scaled = 0;

    for (int k = 0; k < n; k++) most = __builtin_fabs(items[k]) > most ? __builtin_fabs(items[k]) : most;
    if (!is_unsure(sum) || sum != sum || most == 0 || !finite_mask(most)) return __builtin_sqrt(sum);

    const double by = most > 1 ? 0x1p-600 : 0x1p600;
    for (int k = 0; k < n; k++) scaled += items[k] * by * (items[k] * by);
    return __builtin_sqrt(scaled) / by;
}

#if BCAST_VECTORS
template <class V>
BCAST_INLINE bool are_unsure(V sum)
{
    if constexpr (is_two<V>) {
        return are_unsure(sum.low) || are_unsure(sum.high);
    } else {
        const auto sure = (sum > 0x1p-900) & (sum < 0x1p1000);
        long long all = -1;
        for (unsigned k = 0; k < sizeof sum / 8; k++) all &= sure[k];
        return !all;
    }
}
BCAST_INLINE bool is_unsure(Lanes<double> sum) { return are_unsure(sum); }
#endif

template <class Item, int n>
void measure_vectors(const bcast_short_call *all)
{
    const bcast_short_call call = *all;
    const auto step = [&](auto like, ptrdiff_t i) BCAST_LAMBDA_INLINE {
        using V = decltype(like);
        V a[n];

        load_vectors<V, Item>(n, call.a, i, a);
        const auto sum = dot<Item>(n, a, a);
        V root = narrowed_lanes(like, root_of_lanes(sum));
        if constexpr (sizeof(Item) == 8) {
            if (is_unsure(sum)) {
                Item items[n], roots[short_lanes<Item>];
                const ptrdiff_t count = is_item<V, Item> ? 1 : short_lanes<Item>;
                for (ptrdiff_t j = 0; j < count; j++) {
                    load_vectors<Item, Item>(n, call.a, i + j, items);
                    roots[j] = scaled_norm<Item>(n, items, dot<Item>(n, items, items));
                }
                memcpy(&root, roots, sizeof root);
            }
        }
        store_vectors<V, Item>(1, call.dst, i, &root);
    };
    BCAST_SHORT_LOOP(Item, call.count, step)
}

/* ---- Statistics ---- */

/* Masks: whether x is a number, and whether x is above 0. */
template <class V>
BCAST_INLINE auto number_mask(V x)
{
    if constexpr (is_item<V, double>) return x == x ? ~static_cast<uint64_t>(0) : 0;
#if BCAST_VECTORS
    else if constexpr (is_two<V>) return Two<decltype(number_mask(x.low))>{number_mask(x.low), number_mask(x.high)};
    else return x == x;
#endif
}

template <class V>
BCAST_INLINE auto positive_mask(V x)
{
    if constexpr (is_item<V, double>) return x > 0 ? ~static_cast<uint64_t>(0) : 0;
#if BCAST_VECTORS
    else if constexpr (is_two<V>)
        return Two<decltype(positive_mask(x.low))>{positive_mask(x.low), positive_mask(x.high)};
    else return x > 0;
#endif
}

template <class V>
BCAST_INLINE V quotient_of(V a, V b)
{
#if BCAST_VECTORS
    if constexpr (is_two<V>) return {quotient_of(a.low, b.low), quotient_of(a.high, b.high)};
    else
#endif
    return a / b;
}

template <class V>
BCAST_INLINE bool are_zero(V x)
{
#if BCAST_VECTORS
    if constexpr (!is_item<V, double>) return sum_of_lanes(x) == 0;
    else
#endif
    return x == 0;
}

/* The sum of 2 to 4 numbers, which is not -0. */
template <class V>
BCAST_INLINE V sum_of_few(const int n, const V *x)
{
    const V first = x[0] + V{};

    if (n == 2) return first + x[1];
    return n == 3 ? first + x[1] + x[2] : (first + x[1]) + (x[2] + x[3]);
}

/* The same, compensated. If the sum is infinite or NaN, it is computed again later, without error terms. */
template <class Item, class V>
BCAST_INLINE V compensated_sum(const int n, const V *x)
{
    V sum = x[0], error = {};

    if constexpr (is_item<V, double>) return sum_of_products<Item>(n, x);
    for (int k = 1; k < n; k++) {
        const V after = sum + x[k];
        error = error + BCAST_TWO_SUM_ERROR(sum, x[k], after);
        sum = after;
    }
    return sum + error;
}

/* The mean or the sum of items of float64, and their variance, if they are wanted. A NaN that is skipped becomes 0
   among the items.

   The mean from a sum that is not compensated has an error: the mean of the deviations from it. The sum of squares is
   corrected by this error. */
template <class Item, class Wide>
BCAST_INLINE void find_statistics_of(
    const bcast_short_statistics &wanted, const int n, Wide *items, Wide *mean, Wide *variance)
{
    Wide count = spread<Wide>(static_cast<double>(n)), apart[BCAST_SHORT_MOST], squares[BCAST_SHORT_MOST];
    decltype(number_mask(count)) are_numbers[BCAST_SHORT_MOST];

    if (wanted.skips_nan) {
        count = Wide{};
        for (int k = 0; k < n; k++) {
            are_numbers[k] = number_mask(items[k]);
            items[k] = masked(items[k], are_numbers[k]);
            count = count + masked(spread<Wide>(1.0), are_numbers[k]);
        }
    }

    if (sizeof(Item) == 8 && wanted.compensates) *mean = compensated_sum<Item>(n, items);
    else *mean = sum_of_few(n, items);
    if (wanted.made == BCAST_SHORT_SUM) return;
    if (wanted.made == BCAST_SHORT_SPREAD && !wanted.skips_nan) *mean = *mean * spread<Wide>(1.0 / n);
    else *mean = quotient_of(*mean, count);
    if (wanted.made == BCAST_SHORT_MEAN) return;

    for (int k = 0; k < n; k++) {
        apart[k] = items[k] - *mean;
        if (wanted.skips_nan) apart[k] = masked(apart[k], are_numbers[k]);
        squares[k] = rounded(apart[k] * apart[k]);
    }
    Wide sum = sum_of_few(n, squares);
    if constexpr (sizeof(Item) == 8) {
        const Wide off = sum_of_few(n, apart), correction = rounded(rounded(off * off) * spread<Wide>(1.0 / n));
        sum = sum - masked(correction, finite_mask(sum));      /* it overflows if the sum does */
    }
    const Wide divisor = count - spread<Wide>(wanted.ddof);
    const auto has_any = positive_mask(divisor);
    *variance = quotient_of(masked(sum, has_any), masked(divisor, has_any));
}

/* Compute results that are infinite or NaN again, from a quarter of each item: a partial sum of items or of squares may
   have overflowed. */
template <class Item, int n>
void find_statistics_again(const bcast_short_call *call)
{
    const bcast_short_statistics wanted = call->statistics;
    const int results = wanted.made == BCAST_SHORT_MEAN_AND_SPREAD ? 2 : 1;

    for (ptrdiff_t i = 0; i < call->count; i++) {
        Item found[2] = {}, items[n];
        double mean, variance = 0;
        load_vectors<Item, Item>(results, call->dst, i, found);
        if (finite_mask(found[0]) && finite_mask(found[1])) continue;

        load_vectors<Item, Item>(n, call->a, i, items);
        for (int k = 0; k < n; k++) items[k] *= 0.25;
        find_statistics_of<Item>(wanted, n, items, &mean, &variance);
        found[0] = mean * 4;
        if (wanted.made >= BCAST_SHORT_SPREAD)
            found[results - 1] = wanted.root ? root_of_lanes(variance * 16) : variance * 16;
        store_vectors<Item, Item>(results, call->dst, i, found);
    }
}

template <class Item, int n>
void find_statistics(const bcast_short_call *all)
{
    const bcast_short_call call = *all;
    const bcast_short_statistics wanted = call.statistics;
    decltype(widened_lanes(Lanes<Item>())) special = {};    /* NaN in lanes with an infinite result or NaN */
    double special_item = 0;

    const auto step = [&](auto like, ptrdiff_t i) BCAST_LAMBDA_INLINE {
        using V = decltype(like);
        using Wide = decltype(widened_lanes(like));
        V a[n];
        Wide items[n], mean = {}, variance = {};
        load_vectors<V, Item>(n, call.a, i, a);
        for (int k = 0; k < n; k++) items[k] = widened_lanes(a[k]);
        find_statistics_of<Item>(wanted, n, items, &mean, &variance);
        if (wanted.root) variance = root_of_lanes(variance);

        if constexpr (is_item<V, Item>) special_item = special_item + (mean + variance) * 0;
        else special = special + (mean + variance) * Wide{};
        if (wanted.made == BCAST_SHORT_MEAN_AND_SPREAD) {
            const V results[] = {narrowed_lanes(like, mean), narrowed_lanes(like, variance)};
            store_vectors<V, Item>(2, call.dst, i, results);
        } else {
            const V result = narrowed_lanes(like, wanted.made == BCAST_SHORT_SPREAD ? variance : mean);
            store_vectors<V, Item>(1, call.dst, i, &result);
        }
    };
    BCAST_SHORT_LOOP(Item, call.count, step)

    if constexpr (sizeof(Item) == 8) {
        const bool is_special = !(special_item == 0) || !are_zero(special);
        if (is_special) find_statistics_again<Item, n>(all);
    }
}

/* ---- Stacks ---- */

template <class Item, int n>
void stack_vectors(const bcast_short_call *all)
{
    const bcast_short_call call = *all;

    if constexpr (sizeof(Item) < 4) {
        const char *src[n];
        char *dst = call.dst.items[0];
        for (int k = 0; k < n; k++) src[k] = call.a.items[k];
        BCAST_INDEPENDENT_ITEMS
        for (ptrdiff_t i = 0; i < call.count; i++) {
            for (int k = 0; k < n; k++) {
                const Item item = load_item<Item>(src[k] + i * sizeof(Item));
                memcpy(dst + (i * n + k) * sizeof(Item), &item, sizeof item);
            }
        }
    } else {
        const auto step = [&](auto like, ptrdiff_t i) BCAST_LAMBDA_INLINE {
            using V = decltype(like);
            V a[n];
            load_vectors<V, Item>(n, call.a, i, a);
            store_vectors<V, Item>(n, call.dst, i, a);
        };
        BCAST_SHORT_LOOP(Item, call.count, step)
    }
}

/* ---- The table of the kernels ---- */

template <class Item, int n>
constexpr void set_kernels(ShortKernels *kernels, int kind)
{
    kernels->of[BCAST_DOT].of[kind].of[n][1] = dot_vectors<Item, n>;
    kernels->of[BCAST_MATVEC].of[kind].of[n][2] = transform_vectors<Item, n, 2>;
    kernels->of[BCAST_MATVEC].of[kind].of[n][3] = transform_vectors<Item, n, 3>;
    kernels->of[BCAST_MATVEC].of[kind].of[n][4] = transform_vectors<Item, n, 4>;
    if constexpr (is_float<Item>) {
        kernels->of[BCAST_NORM].of[kind].of[n][1] = measure_vectors<Item, n>;
        kernels->of[BCAST_STATISTICS].of[kind].of[n][1] = find_statistics<Item, n>;
        kernels->of[BCAST_STATISTICS].of[kind].of[n][2] = find_statistics<Item, n>;
    }
}

template <class Item>
constexpr void set_all_kernels(ShortKernels *kernels, int kind)
{
    set_kernels<Item, 2>(kernels, kind);
    set_kernels<Item, 3>(kernels, kind);
    set_kernels<Item, 4>(kernels, kind);
    kernels->of[BCAST_CROSS].of[kind].of[3][3] = cross_vectors<Item>;
}

template <class Item>
constexpr void set_stacks(ShortKernels *kernels, int kind)
{
    kernels->of[BCAST_STACK].of[kind].of[2][2] = stack_vectors<Item, 2>;
    kernels->of[BCAST_STACK].of[kind].of[3][3] = stack_vectors<Item, 3>;
    kernels->of[BCAST_STACK].of[kind].of[4][4] = stack_vectors<Item, 4>;
}

constexpr ShortKernels make_short_kernels()
{
    ShortKernels kernels = {};
    set_all_kernels<float>(&kernels, BCAST_SHORT_F32);
    set_all_kernels<double>(&kernels, BCAST_SHORT_F64);
    set_all_kernels<uint64_t>(&kernels, BCAST_SHORT_U64);
    set_stacks<uint64_t>(&kernels, BCAST_SHORT_U64);
    set_stacks<uint32_t>(&kernels, BCAST_SHORT_U32);
    set_stacks<uint16_t>(&kernels, BCAST_SHORT_U16);
    set_stacks<uint8_t>(&kernels, BCAST_SHORT_U8);
    return kernels;
}

constexpr ShortKernels table = make_short_kernels();
