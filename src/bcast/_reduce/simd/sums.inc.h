/* Sums in vectors: terms are loaded as wide vectors, few of which are added as they are; then they are added to
   accumulators, which go to a sink in the end. The kernels in the files after this one are made of these words. */

template <class Kind> using Terms = Vector<Term<Kind>, Kind::lanes>;
template <class Kind> using Wide = Vector<typename Kind::Wide, Kind::lanes>;
template <class Kind> using FourSums = Vector<Sum<Kind>, 4>;
template <class Kind> using FourResults = Vector<Term<Kind>, 4>;

/* Four accumulators. Where the kind is compensated, they have error terms, and bounds of what these have lost. */
template <class Kind>
struct Accumulators {
    FourSums<Kind> sum;
    FourSums<Kind> error;
    FourSums<Kind> lost;
};

/* ---- Conversions, for each kind ---- */

/* A vector of terms, given by their bits, as a wide one. */
BCAST_INLINE Wide<u32> widened(u32, Terms<u32> bits) { return bits; }
BCAST_INLINE Wide<u64> widened(u64, Terms<u64> bits) { return bits; }
BCAST_INLINE Wide<f16> widened(f16, Terms<f16> bits) { return floats_of_halves(bits); }
BCAST_INLINE Wide<bf16> widened(bf16, Terms<bf16> bits) { return doubles(floats_of_bfloats(bits)); }
BCAST_INLINE Wide<f32> widened(f32, Terms<f32> bits) { return doubles(bits_as<Vector<float, 4>>(bits)); }
BCAST_INLINE Wide<f64> widened(f64, Terms<f64> bits) { return bits_as<Wide<f64>>(bits); }

/* Four lanes of a wide vector, from 4 * i on, as terms for accumulators. */
template <class Kind>
BCAST_INLINE FourSums<Kind> part(Kind, Wide<Kind> wide, int) { return wide; }
BCAST_INLINE FourSums<u32> part(u32, Wide<u32> wide, int i) { return half_of<FourSums<u32>>(wide, i); }
BCAST_INLINE FourSums<f16> part(f16, Wide<f16> wide, int i) { return doubles_of_half(wide, i); }

/* Four sums as results, given by their bits. */
BCAST_INLINE FourResults<u32> narrowed(u32, FourSums<u32> sums) { return sums; }
BCAST_INLINE FourResults<u64> narrowed(u64, FourSums<u64> sums) { return sums; }
BCAST_INLINE FourResults<f16> narrowed(f16, FourSums<f16> sums) { return halves_of(sums); }
BCAST_INLINE FourResults<bf16> narrowed(bf16, FourSums<bf16> sums) { return bfloats_of(sums); }
BCAST_INLINE FourResults<f32> narrowed(f32, FourSums<f32> sums) { return bits_as<FourResults<f32>>(floats(sums)); }
BCAST_INLINE FourResults<f64> narrowed(f64, FourSums<f64> sums) { return bits_as<FourResults<f64>>(sums); }

/* ---- Terms ---- */

template <class Kind>
BCAST_INLINE Wide<Kind> load_terms(const char *at)
{
    return widened(Kind(), load<Terms<Kind>>(at));
}

/* The terms that the mask leaves, the others zero. */
template <class Kind>
BCAST_INLINE Wide<Kind> load_masked(const char *at, const Term<Kind> *mask)
{
    return widened(Kind(), load<Terms<Kind>>(at) & load<Terms<Kind>>(mask));
}

/* a + b. Where terms are converted, that keeps the units busy that add: multiplied by one, a is added by the others. */
template <class Kind>
BCAST_INLINE Wide<Kind> plus(Wide<Kind> a, Wide<Kind> b)
{
    if constexpr (Kind::converted) return a * ones<Wide<Kind>>() + b;
    else return a + b;
}

/* The vectors at src and src + stride. */
template <class Kind>
BCAST_INLINE Wide<Kind> sum_of_2(const char *src, ptrdiff_t stride)
{
    const Wide<Kind> a = load_terms<Kind>(src), b = load_terms<Kind>(src + stride);
    return plus<Kind>(a, b);
}

/* Those at src, src + stride, src + 2 * stride and src + 3 * stride. */
template <class Kind>
BCAST_INLINE Wide<Kind> sum_of_4(const char *src, ptrdiff_t stride)
{
    const Wide<Kind> a = sum_of_2<Kind>(src, stride), b = sum_of_2<Kind>(src + 2 * stride, stride);
    return plus<Kind>(a, b);
}

/* ---- Accumulators ---- */

/* Numbers without their signs. */
template <class V>
BCAST_INLINE V size_of(V x)
{
    if constexpr (is_two<V>) {
        return {size_of(x.low), size_of(x.high)};
    } else {
        using Bits = decltype(x < x);
        return bits_as<V>(bits_as<Bits>(x) & INT64_MAX);
    }
}

/* Numbers times another one. */
template <class V>
BCAST_INLINE V scaled(V x, double by) { return x * all_lanes<V>(by); }

/* The greatest number of all lanes. */
template <class V>
BCAST_INLINE double most_of_lanes(V x)
{
    if constexpr (is_two<V>) {
        const double low = most_of_lanes(x.low), high = most_of_lanes(x.high);
        return low > high ? low : high;
    } else {
        double most = x[0];
        for (unsigned i = 1; i < sizeof x / sizeof most; i++) most = x[i] > most ? x[i] : most;
        return most;
    }
}

/* The powers of two that positive numbers begin with. */
template <class V>
BCAST_INLINE V without_fraction(V x)
{
    if constexpr (is_two<V>) {
        return {without_fraction(x.low), without_fraction(x.high)};
    } else {
        using Bits = decltype(x < x);
        return bits_as<V>(bits_as<Bits>(x) & INT64_C(0x7ff0000000000000));
    }
}

/* x, but zero where another vector has zeros. */
template <class V>
BCAST_INLINE V unless_zero(V other, V x)
{
    if constexpr (is_two<V>) {
        return {unless_zero(other.low, x.low), unless_zero(other.high, x.high)};
    } else {
        using Bits = decltype(x < x);
        return bits_as<V>(bits_as<Bits>(x) & (other != V{}));
    }
}

/* x, but zero where it is less than another vector. */
template <class V>
BCAST_INLINE V unless_less(V x, V other)
{
    if constexpr (is_two<V>) {
        return {unless_less(x.low, other.low), unless_less(x.high, other.high)};
    } else {
        using Bits = decltype(x < x);
        return bits_as<V>(bits_as<Bits>(x) & (x >= other));
    }
}

/* A sum and what rounds it off: two_sum (Knuth, TAOCP 2, 4.2.2). Multiplied by one, half of the terms are added by the
   units that multiply. */
template <class V>
BCAST_INLINE V two_sum_of(V a, V b, V *error)
{
    const V one = ones<V>(), sum = a * one + b, b_of_sum = sum - a, a_of_sum = sum * one - b_of_sum;

    *error = (a * one - a_of_sum) + (b - b_of_sum);
    return sum;
}

/* Add to error terms. What rounds them off is lost. */
template <class Kind>
BCAST_INLINE void add_errors_to(Accumulators<Kind> *to, FourSums<Kind> errors)
{
    FourSums<Kind> lost;

    to->error = two_sum_of(to->error, errors, &lost);
    to->lost = to->lost + size_of(lost);
}

/* Add terms to accumulators, exactly if the error is kept. */
template <class Kind>
BCAST_INLINE void two_sum(Accumulators<Kind> *to, FourSums<Kind> terms)
{
    if constexpr (Kind::compensated) {
        FourSums<Kind> error;
        to->sum = two_sum_of(to->sum, terms, &error);
        add_errors_to(to, error);
    } else {
        to->sum = to->sum + terms;
    }
}

/* Let accumulators be the sums of two terms each. */
template <class Kind>
BCAST_INLINE void begin_pairs(Accumulators<Kind> *to, FourSums<Kind> a, FourSums<Kind> b)
{
    if constexpr (Kind::compensated) {
        to->sum = two_sum_of(a, b, &to->error);
        to->lost = FourSums<Kind>{};
    } else {
        to->sum = a + b;
    }
}

/* Add two terms to each accumulator. The terms are added first, and what both additions round off: no addition to an
   accumulator waits for more than the one before. */
template <class Kind>
BCAST_INLINE void add_pairs(Accumulators<Kind> *to, FourSums<Kind> a, FourSums<Kind> b)
{
    FourSums<Kind> error, more_error, lost;
    const FourSums<Kind> terms = two_sum_of(a, b, &error);

    to->sum = two_sum_of(to->sum, terms, &more_error);
    const FourSums<Kind> errors = two_sum_of(error, more_error, &lost);
    to->lost = to->lost + size_of(lost);
    add_errors_to(to, errors);
}

/* Add accumulators to others. */
template <class Kind>
BCAST_INLINE void add_sums(Accumulators<Kind> *to, const Accumulators<Kind> *more)
{
    two_sum(to, more->sum);
    if constexpr (Kind::compensated) {
        add_errors_to(to, more->error);
        to->lost = to->lost + more->lost;
    }
}

/* Add terms that are rounded themselves, by fast_two_sum (Dekker, Numer. Math. 18, 1971): exact unless a term is larger
   than the sum, and rounded then. */
template <class Kind>
BCAST_INLINE void fast_two_sum(Accumulators<Kind> *to, FourSums<Kind> terms)
{
    const FourSums<Kind> sum = to->sum + terms;

    if constexpr (Kind::compensated) {
        const FourSums<Kind> one = ones<FourSums<Kind>>();
        to->error = (terms * one - (sum - to->sum)) * one + to->error;
    }
    to->sum = sum;
}

/* Add each part of a wide vector to accumulators of its own. */
template <class Kind>
BCAST_INLINE void add_parts(Accumulators<Kind> *to, Wide<Kind> wide)
{
    for (int i = 0; i < Kind::parts; i++) two_sum(&to[i], part(Kind(), wide, i));
}

/* Add the parts of a wide vector to the same accumulators, which the first part begins where it `begins`. */
template <class Kind>
BCAST_INLINE void join_parts(bool begins, Accumulators<Kind> *to, Wide<Kind> wide)
{
    for (int i = 0; i < Kind::parts; i++) {
        const FourSums<Kind> terms = part(Kind(), wide, i);

        if (begins && i == 0) to->sum = terms;
        else two_sum(to, terms);
    }
}

/* Add a vector's columns of each of `n` rows, which may begin the sums: pairs of them where compensated, elsewhere a tree
   of plain sums. */
template <class Kind>
SPECIALISED void add_columns(
    const int n, bool begins, Accumulators<Kind> *to, const char *src, ptrdiff_t stride, ptrdiff_t half_stride)
{
    constexpr int tree = Kind::compensated ? 2 : 4;

    if constexpr (Kind::compensated) {
        for (int i = 0; i + 2 <= n; i += 2) {
            const char *at = src + i % 4 * stride + i / 4 * half_stride;
            const FourSums<Kind> a = load_terms<Kind>(at), b = load_terms<Kind>(at + stride);
            if (begins && i == 0) begin_pairs(to, a, b);
            else add_pairs(to, a, b);
        }
    } else if (n >= 4) {
        Wide<Kind> sum = sum_of_4<Kind>(src, stride);
        if (n == 8) sum = plus<Kind>(sum, sum_of_4<Kind>(src + half_stride, stride));
        add_parts(to, sum);
    }
    for (int i = n / tree * tree; i < n; i++)
        add_parts(to, load_terms<Kind>(src + i % 4 * stride + i / 4 * half_stride));
}

/* ---- Sinks ---- */

/* Sums, of which each error term has lost so much at most, rounded once; UNSETTLED where that does not settle the last
   bit. What is infinite or NaN stays. The docs, `design/sums.md`, have the proof. */
template <class V>
BCAST_INLINE V settled_sums(V sum, V error, V lost)
{
    if (all_are_zero(lost)) return sum + error;
    if constexpr (is_two<V>) {
        return {settled_sums(sum.low, error.low, lost.low), settled_sums(sum.high, error.high, lost.high)};
    } else {
        using Bits = decltype(sum < sum);
        V rest;
        const V total = two_sum_of(sum, error, &rest);
        const V rounding = unless_zero(lost, scaled(size_of(rest), 0x1p-52));      /* of what follows */
        const V reach = scaled(lost, 1.125) + rounding;
        const Bits is_settled = (total + (rest + reach) == total) & (total + (rest - reach) == total);
        const Bits stays = is_settled | (total - total != V{});

        return bits_as<V>((bits_as<Bits>(total) & stays) | (static_cast<int64_t>(BCAST_UNSETTLED) & ~stays));
    }
}

/* The accumulators of a sink, their error terms or the bounds of what these have lost, from one on. */
template <class Kind>
BCAST_INLINE char *sums_from(char *sums, ptrdiff_t at)
{
    return sums + at * static_cast<ptrdiff_t>(sizeof(Sum<Kind>));
}

/* Four accumulators of a sink. */
template <class Kind>
BCAST_INLINE Accumulators<Kind> load_accumulators(const bcast_sink *src, ptrdiff_t at)
{
    Accumulators<Kind> sums;

    sums.sum = load<FourSums<Kind>>(sums_from<Kind>(src->sum, at));
    if constexpr (Kind::compensated) {
        sums.error = load<FourSums<Kind>>(sums_from<Kind>(src->error, at));
        sums.lost = load<FourSums<Kind>>(sums_from<Kind>(src->lost, at));
    }
    return sums;
}

/* Accumulators that hold what is added to from sum `at` on, or zeros: for each part of a vector. */
template <class Kind>
BCAST_INLINE void begin(const bcast_sink *dst, ptrdiff_t at, Accumulators<Kind> *sums)
{
    for (int i = 0; i < Kind::parts; i++)
        sums[i] = dst->mode == BCAST_ADD ? load_accumulators<Kind>(dst, at + 4 * i) : Accumulators<Kind>{};
}

/* Put four accumulators where the sink says, from sum `at` on, in place of what is there. A lane of `special` becomes
   NaN if a result is infinite, NaN or unsettled, where compensated. */
template <class Kind>
BCAST_INLINE void put(const bcast_sink *dst, ptrdiff_t at, const Accumulators<Kind> *sums, FourSums<Kind> *special)
{
    if (dst->mode == BCAST_WRITE) {
        FourSums<Kind> all = sums->sum;
        if constexpr (Kind::compensated) {
            all = settled_sums(sums->sum, sums->error, sums->lost);
            *special = all * FourSums<Kind>{} + *special;
        }
        store(dst->sum + at * Kind::bytes, narrowed(Kind(), all));
        return;
    }
    store(sums_from<Kind>(dst->sum, at), sums->sum);
    if constexpr (Kind::compensated) {
        store(sums_from<Kind>(dst->error, at), sums->error);
        store(sums_from<Kind>(dst->lost, at), sums->lost);
    }
}

/* What a kernel returns when it is done: whether some results that it wrote must be made again. */
template <class Kind>
BCAST_INLINE int done(const bcast_sink *dst, FourSums<Kind> special)
{
    if constexpr (!Kind::compensated) return 0;
    return dst->mode == BCAST_WRITE && !(sum_of_lanes(special) == 0) ? BCAST_HAS_SPECIAL : 0;
}

/* Put four sums, and add what is there where the sink says so. */
template <class Kind>
BCAST_INLINE void put_added(const bcast_sink *dst, ptrdiff_t at, Accumulators<Kind> *sums, FourSums<Kind> *special)
{
    if (dst->mode == BCAST_ADD) {
        const Accumulators<Kind> more = load_accumulators<Kind>(dst, at);
        add_sums(sums, &more);
    }
    put(dst, at, sums, special);
}

/* The same with the first `n` of four, by way of room for all. */
template <class Kind>
SPECIALISED void put_some(
    const bcast_sink *dst, ptrdiff_t at, ptrdiff_t n, Accumulators<Kind> *sums, FourSums<Kind> *special)
{
    const ptrdiff_t size = dst->mode == BCAST_WRITE ? Kind::bytes : static_cast<ptrdiff_t>(sizeof(Sum<Kind>));
    const bool has_errors = Kind::compensated && dst->mode != BCAST_WRITE;
    Sum<Kind> sum[4] = {0}, error[4] = {0}, lost[4] = {0};
    const bcast_sink room = {
        dst->mode, reinterpret_cast<char *>(sum), reinterpret_cast<char *>(error), reinterpret_cast<char *>(lost),
    };

    if (n >= 4) {
        put_added(dst, at, sums, special);
        return;
    }

    if (dst->mode == BCAST_ADD) {
        memcpy(sum, dst->sum + at * size, n * size);
        if (has_errors) memcpy(error, dst->error + at * size, n * size);
        if (has_errors) memcpy(lost, dst->lost + at * size, n * size);
    }
    put_added(&room, 0, sums, special);

    memcpy(dst->sum + at * size, sum, n * size);
    if (has_errors) memcpy(dst->error + at * size, error, n * size);
    if (has_errors) memcpy(dst->lost + at * size, lost, n * size);
}

/* Add `n` accumulators to as many others. */
template <class Kind>
void add_accumulators(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    FourSums<Kind> special;     /* of no results, which are not made yet */
    ptrdiff_t i = 0;

    if constexpr (Kind::compensated) {
        for (; i + 4 <= n; i += 4) {
            Accumulators<Kind> to = load_accumulators<Kind>(dst, i);
            const Accumulators<Kind> more = load_accumulators<Kind>(src, i);
            add_sums(&to, &more);
            put(dst, i, &to, &special);
        }
    }
    for (; i < n; i++) add_accumulator<Kind>(place_in<Kind>(dst, i), place_in<Kind>(src, i));
}
