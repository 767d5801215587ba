/* Rows of results that are each made of some terms: the steps of a chain run on a tile of items in registers, and terms
   are folded there onto a tile of accumulators.

   Each result of a step is rounded. Sums of float64 have error terms, as in `_reduce/simd/sum.h`; those of float32 are
   float64. A tile is some vectors of 4 items, as long as there are so many, or else a single item. */

/* Single items. */
template <class T>
struct FoldedItem {
    using Items = T;
    using Sums = double;
    static constexpr int lanes = 1;

    ON_TARGET BCAST_INLINE void widen(const Items &x, Sums &sum) { sum = x; }
    ON_TARGET BCAST_INLINE void narrow(const Sums &sum, Items &x) { x = static_cast<T>(sum); }
    ON_TARGET BCAST_INLINE void repeat(T x, Items &all) { all = x; }
    ON_TARGET BCAST_INLINE void drop_sign(Items &x) { x = x < 0 ? -x : x + 0; }
    ON_TARGET BCAST_INLINE void choose(bool wins, const Items &x, Items &best) { best = wins ? x : best; }
};

#ifdef __GNUC__
/* Vectors, by the compiler's own operators. */
template <class T>
struct FoldedVector {
    typedef T Items __attribute__((vector_size(4 * sizeof(T))));
    typedef double Sums __attribute__((vector_size(4 * sizeof(double))));
    static constexpr int lanes = 4;

    ON_TARGET BCAST_INLINE void widen(const Items &x, Sums &sum) { sum = __builtin_convertvector(x, Sums); }
    ON_TARGET BCAST_INLINE void narrow(const Sums &sum, Items &x) { x = __builtin_convertvector(sum, Items); }
    ON_TARGET BCAST_INLINE void repeat(T x, Items &all) { all = Items{x, x, x, x}; }
    ON_TARGET BCAST_INLINE void drop_sign(Items &x) { x = x < 0 ? -x : x + 0; }

    template <class Mask>
    ON_TARGET BCAST_INLINE void choose(const Mask &wins, const Items &x, Items &best) { best = wins ? x : best; }
};
#endif

/* Some vectors of items, and what is made of their terms so far. */
template <class V, int count>
struct FoldedTile {
    typename V::Items x[count];
    typename V::Items best[count];
    typename V::Sums sums[count];
    typename V::Sums errors[count];
};

/* Load vector number `j` of an operand, which has a row of items or one for all. */
template <class V, class T>
ON_TARGET BCAST_INLINE void load_items(typename V::Items &items, const T *at, bool is_row, int j)
{
    if (is_row) memcpy(&items, at + j * V::lanes, sizeof(items));
    else V::repeat(*at, items);
}

template <class V, int count, class T>
ON_TARGET BCAST_INLINE void compute_step(typename V::Items (&x)[count], int function, const T *operand, bool is_row)
{
    typename V::Items y;

#define BCAST_EACH(compute) \
    for (int j = 0; j < count; j++) { load_items<V>(y, operand, is_row, j); x[j] = compute; } \
    break
    switch (function) {
    case bcast_number_add: BCAST_EACH(x[j] + y);
    case bcast_number_subtract: BCAST_EACH(x[j] - y);
    case bcast_number_multiply: BCAST_EACH(x[j] * y);
    case bcast_number_divide: BCAST_EACH(x[j] / y);
    case bcast_number_square:
        for (int j = 0; j < count; j++) x[j] = x[j] * x[j];
        break;
    default:        /* bcast_number_absolute */
        for (int j = 0; j < count; j++) V::drop_sign(x[j]);
    }
#undef BCAST_EACH
}

/* Compute term number `k` of the results from one on. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE void compute_terms(
    const bcast_folding &call, ptrdiff_t k, ptrdiff_t at, typename V::Items (&x)[count])
{
    const T *items = reinterpret_cast<const T *>(call.operands[0] + k * call.depth_strides[0]);
    const bool are_rows = call.strides[0] != 0;

    for (int j = 0; j < count; j++) load_items<V>(x[j], items + (are_rows ? at : 0), are_rows, j);
    for (int s = 0; s < call.steps; s++) {
        const bool is_row = call.strides[s + 1] != 0;
        const char *operand = call.operands[s + 1] + k * call.depth_strides[s + 1];
        compute_step<V, count>(x, call.functions[s], reinterpret_cast<const T *>(operand) + (is_row ? at : 0), is_row);
    }
}

/* Add terms to sums; of float64, what rounding costs goes to the error terms: Knuth's two_sum. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE void add_terms(FoldedTile<V, count> &tile)
{
    for (int j = 0; j < count; j++) {
        typename V::Sums term;
        V::widen(tile.x[j], term);
        const typename V::Sums before = tile.sums[j], sum = before + term;
        tile.sums[j] = sum;
        if (sizeof(T) == sizeof(double)) {
            const typename V::Sums added = sum - before;
            tile.errors[j] += (before - (sum - added)) + (term - added);
        }
    }
}

template <class V, int count, class T>
ON_TARGET BCAST_INLINE void fold_sums(const bcast_folding &call, ptrdiff_t at, FoldedTile<V, count> &tile)
{
    compute_terms<V, count, T>(call, 0, at, tile.x);
    for (int j = 0; j < count; j++) {
        V::widen(tile.x[j], tile.sums[j]);
        tile.errors[j] = tile.sums[j] - tile.sums[j];
    }
    for (ptrdiff_t k = 1; k < call.depth; k++) {
        compute_terms<V, count, T>(call, k, at, tile.x);
        add_terms<V, count, T>(tile);
    }
    for (int j = 0; j < count; j++) {
        if (sizeof(T) == sizeof(double)) tile.sums[j] += tile.errors[j];
        if (call.divisor != 1) tile.sums[j] = tile.sums[j] / call.divisor;
        V::narrow(tile.sums[j], tile.best[j]);
    }
}

/* Keep the greater items, or the less; NaN stays, wherever it comes from. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE void fold_extremes(const bcast_folding &call, ptrdiff_t at, FoldedTile<V, count> &tile)
{
    const bool greatest = call.fold == bcast_fold_greatest;

    compute_terms<V, count, T>(call, 0, at, tile.best);
    for (ptrdiff_t k = 1; k < call.depth; k++) {
        compute_terms<V, count, T>(call, k, at, tile.x);
        for (int j = 0; j < count; j++) {
            const typename V::Items &x = tile.x[j];
            V::choose((greatest ? x > tile.best[j] : x < tile.best[j]) | (x != x), x, tile.best[j]);
        }
    }
}

/* Make the results of whole tiles, from one on; return the one that is next. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE ptrdiff_t fold_tiles(const bcast_folding &given, ptrdiff_t at)
{
    const bcast_folding call = given;       /* which no store can change */
    T *dst = static_cast<T *>(call.dst);
    FoldedTile<V, count> tile;

    for (; at + count * V::lanes <= call.n; at += count * V::lanes) {
        if (call.fold == bcast_fold_sum) fold_sums<V, count, T>(call, at, tile);
        else fold_extremes<V, count, T>(call, at, tile);
        memcpy(dst + at, tile.best, sizeof(tile.best));
    }
    return at;
}

template <class T>
ON_TARGET static void fold_items(const bcast_folding &call)
{
    ptrdiff_t at = 0;

#ifdef __GNUC__
    at = fold_tiles<FoldedVector<T>, 4, T>(call, at);
    at = fold_tiles<FoldedVector<T>, 1, T>(call, at);
#endif
    fold_tiles<FoldedItem<T>, 1, T>(call, at);
}

ON_TARGET static void fold(const bcast_folding &call)
{
    if (call.size == 4) fold_items<float>(call);
    else fold_items<double>(call);
}
