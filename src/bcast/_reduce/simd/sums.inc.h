/* Sums in vectors: terms are loaded as wide vectors, a few of these are added, and their sums are added to
   accumulators, which finally go to a sink. The kernels in the files after this one use these functions. */

template <class Kind> using Terms = Vector<Term<Kind>, Kind::lanes>;
template <class Kind> using Wide = Vector<typename Kind::Wide, Kind::lanes>;
template <class Kind> using FourSums = Vector<Sum<Kind>, 4>;
template <class Kind> using FourResults = Vector<Term<Kind>, 4>;

/* Four accumulators, with their error terms if the kind is compensated. */
template <class Kind>
struct Accumulators {
    FourSums<Kind> sum;
    FourSums<Kind> error;
};

/* ---- Conversions, for each kind ---- */

/* A vector of terms, given by their bits, as a wide vector. */
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

/* The terms selected by a mask; the others are zero. */
template <class Kind>
BCAST_INLINE Wide<Kind> load_masked(const char *at, const Term<Kind> *mask)
{
    return widened(Kind(), load<Terms<Kind>>(at) & load<Terms<Kind>>(mask));
}

/* a + b. Conversions of terms occupy the CPU's adders, so that `a` is multiplied by one and added by the multipliers.
   */
template <class Kind>
BCAST_INLINE Wide<Kind> plus(Wide<Kind> a, Wide<Kind> b)
{
    if constexpr (Kind::converted) return a * ones<Wide<Kind>>() + b;
    else return a + b;
}

/* The sum of the vectors at src and src + stride. */
template <class Kind>
BCAST_INLINE Wide<Kind> sum_of_2(const char *src, ptrdiff_t stride)
{
    const Wide<Kind> a = load_terms<Kind>(src), b = load_terms<Kind>(src + stride);
    return plus<Kind>(a, b);
}

/* The sum of those at src, src + stride, src + 2 * stride and src + 3 * stride. */
template <class Kind>
BCAST_INLINE Wide<Kind> sum_of_4(const char *src, ptrdiff_t stride)
{
    const Wide<Kind> a = sum_of_2<Kind>(src, stride), b = sum_of_2<Kind>(src + 2 * stride, stride);
    return plus<Kind>(a, b);
}

/* ---- Accumulators ---- */

/* Add terms to accumulators; if the kind is compensated, exactly. */
template <class Kind>
BCAST_INLINE void two_sum(Accumulators<Kind> *to, FourSums<Kind> terms)
{
    const FourSums<Kind> sum = to->sum + terms;

    if constexpr (Kind::compensated) to->error = to->error + BCAST_TWO_SUM_ERROR(to->sum, terms, sum);
    to->sum = sum;
}

/* The same by fast_two_sum (Dekker), for one of many terms: exact unless the term is larger than the sum; then rounded.
   The term is multiplied by one, so that the CPU's multipliers add it, which are idle here. */
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

/* Add each part of a wide vector to separate accumulators. */
template <class Kind>
BCAST_INLINE void add_parts(const bool fast, Accumulators<Kind> *to, Wide<Kind> wide)
{
    for (int i = 0; i < Kind::parts; i++) {
        const FourSums<Kind> terms = part(Kind(), wide, i);

        if (fast) fast_two_sum(&to[i], terms);
        else two_sum(&to[i], terms);
    }
}

/* Add the parts of a wide vector to the same accumulators; if it `begins`, the first part sets them. */
template <class Kind>
BCAST_INLINE void join_parts(const bool fast, bool begins, Accumulators<Kind> *to, Wide<Kind> wide)
{
    for (int i = 0; i < Kind::parts; i++) {
        const FourSums<Kind> terms = part(Kind(), wide, i);

        if (begins && i == 0) to->sum = terms;
        else if (fast) fast_two_sum(to, terms);
        else two_sum(to, terms);
    }
}

/* Add a vector's columns of each of `n` rows. A tree of plain sums comes first. In a compensated kind, it has two rows,
   so that only one rounding is not in the error term. */
template <class Kind>
SPECIALISED void add_columns(
    const int n, Accumulators<Kind> *to, const char *src, ptrdiff_t stride, ptrdiff_t half_stride)
{
    constexpr int tree = Kind::compensated ? 2 : 4;

    if constexpr (Kind::compensated) {
        for (int i = 0; i + 2 <= n; i += 2)
            add_parts(true, to, sum_of_2<Kind>(src + i % 4 * stride + i / 4 * half_stride, stride));
    } else if (n >= 4) {
        Wide<Kind> sum = sum_of_4<Kind>(src, stride);
        if (n == 8) sum = plus<Kind>(sum, sum_of_4<Kind>(src + half_stride, stride));
        add_parts(false, to, sum);
    }
    for (int i = n / tree * tree; i < n; i++)
        add_parts(false, to, load_terms<Kind>(src + i % 4 * stride + i / 4 * half_stride));
}

/* ---- Sinks ---- */

/* Accumulators, or error terms, of a sink. */
template <class Kind>
BCAST_INLINE char *sums_from(char *sums, ptrdiff_t at)
{
    return sums + at * static_cast<ptrdiff_t>(sizeof(Sum<Kind>));
}

/* The accumulators of a sink from sum `at` on, or zeros if it does not add: for each part of a vector. */
template <class Kind>
BCAST_INLINE void begin(const bcast_sink *dst, ptrdiff_t at, Accumulators<Kind> *sums)
{
    const bool adds = dst->mode == BCAST_ADD;

    for (int i = 0; i < Kind::parts; i++) {
        sums[i].sum = adds ? load_at<FourSums<Kind>>(sums_from<Kind>(dst->sum, at), i) : FourSums<Kind>{};
        if constexpr (Kind::compensated)
            sums[i].error = adds ? load_at<FourSums<Kind>>(sums_from<Kind>(dst->error, at), i) : FourSums<Kind>{};
    }
}

/* Write four accumulators, or results, to a sink, from sum `at` on. In a compensated kind, a lane of `special` becomes
   NaN if a result is infinite or NaN. */
template <class Kind>
BCAST_INLINE void put(const bcast_sink *dst, ptrdiff_t at, const Accumulators<Kind> *sums, FourSums<Kind> *special)
{
    if (dst->mode == BCAST_WRITE) {
        FourSums<Kind> all = sums->sum;
        if constexpr (Kind::compensated) {
            all = all + sums->error;
            *special = all * FourSums<Kind>{} + *special;
        }
        store(dst->sum + at * Kind::bytes, narrowed(Kind(), all));
        return;
    }
    store(sums_from<Kind>(dst->sum, at), sums->sum);
    if constexpr (Kind::compensated) store(sums_from<Kind>(dst->error, at), sums->error);
}

template <class Kind>
BCAST_INLINE bool is_special(FourSums<Kind> special)
{
    if constexpr (Kind::compensated) return !(sum_of_lanes(special) == 0);
    else return false;
}

/* Write four sums to a sink, or add them to its accumulators. A sum of zero is +0, like all sums that begin with 0. */
template <class Kind>
BCAST_INLINE void put_added(const bcast_sink *dst, ptrdiff_t at, Accumulators<Kind> *sums, FourSums<Kind> *special)
{
    sums->sum = sums->sum + FourSums<Kind>{};
    if (dst->mode == BCAST_ADD) {
        two_sum(sums, load<FourSums<Kind>>(sums_from<Kind>(dst->sum, at)));
        if constexpr (Kind::compensated)
            sums->error = sums->error + load<FourSums<Kind>>(sums_from<Kind>(dst->error, at));
    }
    put(dst, at, sums, special);
}

/* The same with the first `n` of four, through a buffer for all four. */
template <class Kind>
SPECIALISED void put_some(
    const bcast_sink *dst, ptrdiff_t at, ptrdiff_t n, Accumulators<Kind> *sums, FourSums<Kind> *special)
{
    const ptrdiff_t size = dst->mode == BCAST_WRITE ? Kind::bytes : static_cast<ptrdiff_t>(sizeof(Sum<Kind>));
    Sum<Kind> sum[4] = {0}, error[4] = {0};
    const bcast_sink room = {dst->mode, reinterpret_cast<char *>(sum), reinterpret_cast<char *>(error)};

    if (n >= 4) {
        put_added(dst, at, sums, special);
        return;
    }

    if (dst->mode == BCAST_ADD) {
        memcpy(sum, dst->sum + at * size, n * size);
        if constexpr (Kind::compensated) memcpy(error, dst->error + at * size, n * size);
    }
    put_added(&room, 0, sums, special);

    memcpy(dst->sum + at * size, sum, n * size);
    if (Kind::compensated && dst->mode != BCAST_WRITE) memcpy(dst->error + at * size, error, n * size);
}
