/* Folds of floats: the steps of a chain run on a tile of items in registers, and their terms are folded there: either
   onto a tile of results, each with many terms, or along the tile onto one result.

   Each result of a step is rounded. Sums of float64 have error terms, as in `_reduce/simd/sum.h`; sums of float32 are
   float64. A tile is four registers of items, or one, or else a single item. A NaN among the terms is an error of a
   comparison, which shows the caller that an extreme is invalid. */

/* Single items. */
template <class T>
struct FoldedItem {
    using Items = T;
    using Sums = double;
    static constexpr int lanes = 1;

    ON_TARGET BCAST_INLINE Sums widened(Items x) { return x; }
    ON_TARGET BCAST_INLINE void store_narrowed(T *dst, Sums sum) { *dst = static_cast<T>(sum); }
    ON_TARGET BCAST_INLINE Sums divided(Sums sum, double by) { return sum / by; }
    ON_TARGET BCAST_INLINE Items repeated(T x) { return x; }
    ON_TARGET BCAST_INLINE Items absolute(Items x) { return static_cast<T>(fabs(x)); }
    ON_TARGET BCAST_INLINE Items greater(Items x, Items y) { return x > y ? x : y; }
    ON_TARGET BCAST_INLINE Items less(Items x, Items y) { return x < y ? x : y; }
};

#ifdef __GNUC__
/* The items of a register, by the compiler's own operators. */
template <class T>
struct FoldedVector {
    static constexpr int lanes = register_bytes / static_cast<int>(sizeof(T));
    using Items = Vector<T, lanes>;
    using Sums = Vector<double, lanes>;
    typedef int64_t Bits __attribute__((vector_size(register_bytes)));

    ON_TARGET BCAST_INLINE Sums widened(Items x)
    {
        if constexpr (sizeof(T) == sizeof(double)) {
            return x;
        } else {
            using Half = Vector<T, lanes / 2>;
            using WideHalf = Vector<double, lanes / 2>;
            return {
                __builtin_convertvector(half_of<Half>(x, 0), WideHalf),
                __builtin_convertvector(half_of<Half>(x, 1), WideHalf),
            };
        }
    }

    ON_TARGET BCAST_INLINE void store_narrowed(T *dst, Sums sum)
    {
        if constexpr (sizeof(T) == sizeof(double)) {
            memcpy(dst, &sum, sizeof(sum));
        } else {
            using Half = Vector<T, lanes / 2>;
            const Half low = __builtin_convertvector(sum.low, Half), high = __builtin_convertvector(sum.high, Half);
            memcpy(dst, &low, sizeof(low));
            memcpy(dst + lanes / 2, &high, sizeof(high));
        }
    }

    ON_TARGET BCAST_INLINE Sums divided(Sums sum, double by)
    {
        if constexpr (is_two<Sums>) return {sum.low / by, sum.high / by};
        else return sum / by;
    }

    ON_TARGET BCAST_INLINE Items repeated(T x) { return x - Items{}; }
    ON_TARGET BCAST_INLINE Items absolute(Items x)
    {
        const Items sign = repeated(static_cast<T>(-0.0));
        return bits_as<Items>(bits_as<Bits>(x) & ~bits_as<Bits>(sign));
    }
    ON_TARGET BCAST_INLINE Items greater(Items x, Items y) { return x > y ? x : y; }
    ON_TARGET BCAST_INLINE Items less(Items x, Items y) { return x < y ? x : y; }
};
#endif

/* Some vectors of terms, or of their extremes. */
template <class V, int count>
struct FoldedTile {
    typename V::Items x[count];
};

/* The state after some terms of a tile. */
template <class V, int count>
struct FoldedSums {
    typename V::Sums sum[count];
    typename V::Sums error[count];
};

/* Load vector number `j` of a row. */
template <class V, class T>
ON_TARGET BCAST_INLINE typename V::Items items_of_row(const T *row, int j)
{
    typename V::Items items;
    memcpy(&items, row + j * V::lanes, sizeof(items));
    return items;
}

/* Apply a function to a tile and the items of the other operand, or its single item. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE void compute_step(FoldedTile<V, count> &tile, int function, const T *operand, bool is_row)
{
#define BCAST_EACH(compute)                                                                                         \
    for (int j = 0; j < count; j++) {                                                                               \
        const typename V::Items x = tile.x[j];                                                                      \
        tile.x[j] = compute;                                                                                        \
    }
#define BCAST_EACH_PAIR(compute)                                                                                    \
    if (is_row) {                                                                                                   \
        for (int j = 0; j < count; j++) {                                                                           \
            const typename V::Items x = tile.x[j], y = items_of_row<V>(operand, j);                                 \
            tile.x[j] = compute;                                                                                    \
        }                                                                                                           \
    } else {                                                                                                        \
        const typename V::Items y = V::repeated(*operand);                                                          \
        BCAST_EACH(compute)                                                                                         \
    }                                                                                                               \
    break

    switch (function) {
    case bcast_number_add: BCAST_EACH_PAIR(x + y);
    case bcast_number_subtract: BCAST_EACH_PAIR(x - y);
    case bcast_number_multiply: BCAST_EACH_PAIR(x * y);
    case bcast_number_divide: BCAST_EACH_PAIR(x / y);
    case bcast_number_square: BCAST_EACH(x * x) break;
    default: BCAST_EACH(V::absolute(x))     /* bcast_number_absolute */
    }
#undef BCAST_EACH_PAIR
#undef BCAST_EACH
}

/* A list of functions that compilers know. An empty list means the functions of the call. */
template <int... functions> struct KnownSteps {};

/* Compute step number `s`. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE void compute_next(
    const bcast_folding &call, ptrdiff_t k, ptrdiff_t at, int function, int s, FoldedTile<V, count> &tile)
{
    const bool is_row = call.strides[s + 1] != 0;
    const char *operand = call.operands[s + 1] + k * call.depth_strides[s + 1];

    compute_step<V, count>(tile, function, reinterpret_cast<const T *>(operand) + (is_row ? at : 0), is_row);
}

/* Compute term number `k` of a tile, from one item on. */
template <class V, int count, class T, int... functions>
ON_TARGET BCAST_INLINE void compute_terms(
    const bcast_folding &call, ptrdiff_t k, ptrdiff_t at, FoldedTile<V, count> &tile, KnownSteps<functions...>)
{
    const T *items = reinterpret_cast<const T *>(call.operands[0] + k * call.depth_strides[0]);
    const bool is_row = call.strides[0] != 0;
    int s = 0;

    if (is_row) for (int j = 0; j < count; j++) tile.x[j] = items_of_row<V>(items + at, j);
    else for (int j = 0; j < count; j++) tile.x[j] = V::repeated(*items);

    if constexpr (sizeof...(functions) > 0)
        (compute_next<V, count, T>(call, k, at, functions, s++, tile), ...);
    else
        for (; s < call.steps; s++) compute_next<V, count, T>(call, k, at, call.functions[s], s, tile);
}

/* Fetch the data of a later tile of terms, if rows are so far apart that the CPU detects no stream. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE void fetch_terms(const bcast_folding &call, ptrdiff_t k, ptrdiff_t at)
{
    constexpr int terms_ahead = 8;
    const ptrdiff_t stride = call.depth_strides[0];

#ifdef __GNUC__
    if (call.strides[0] != 0 && stride >= 4 * BCAST_LINE && k + terms_ahead < call.depth) {
        const char *items = call.operands[0] + (k + terms_ahead) * stride + at * static_cast<ptrdiff_t>(sizeof(T));
        for (int byte = 0; byte < count * static_cast<int>(sizeof(typename V::Items)); byte += BCAST_LINE)
            __builtin_prefetch(items + byte);
    }
#endif
}

/* ---- Sums ---- */

/* Add to a sum; the rounding error goes to its error term: Knuth's two_sum. */
template <class Sums>
ON_TARGET BCAST_INLINE void add_exactly(Sums &sum, Sums &error, Sums term)
{
    const Sums before = sum;
    sum = before + term;
    const Sums added = sum - before;
    error = error + ((before - (sum - added)) + (term - added));
}

/* Add a tile's terms; terms of float32 to float64, with little rounding. */
template <class V, int count, class T>
ON_TARGET BCAST_INLINE void add_terms(const FoldedTile<V, count> &tile, FoldedSums<V, count> &sums)
{
    for (int j = 0; j < count; j++) {
        const typename V::Sums term = V::widened(tile.x[j]);
        if constexpr (sizeof(T) == sizeof(double)) add_exactly(sums.sum[j], sums.error[j], term);
        else sums.sum[j] = sums.sum[j] + term;
    }
}

/* Compute the sums of whole tiles, from result `i` on; return the next result. */
template <class V, int count, class T, class Steps>
ON_TARGET BCAST_INLINE ptrdiff_t sum_tiles(const bcast_folding &given, ptrdiff_t at, Steps steps)
{
    const bcast_folding call = given;       /* a copy, which no store can change */
    T *dst = static_cast<T *>(call.dst);
    FoldedTile<V, count> tile;
    FoldedSums<V, count> sums;

    for (; at + count * V::lanes <= call.n; at += count * V::lanes) {
        compute_terms<V, count, T>(call, 0, at, tile, steps);
        for (int j = 0; j < count; j++) {
            sums.sum[j] = V::widened(tile.x[j]);
            sums.error[j] = sums.sum[j] - sums.sum[j];
        }
        for (ptrdiff_t k = 1; k < call.depth; k++) {
            fetch_terms<V, count, T>(call, k, at);
            compute_terms<V, count, T>(call, k, at, tile, steps);
            add_terms<V, count, T>(tile, sums);
        }
        for (int j = 0; j < count; j++) {
            if constexpr (sizeof(T) == sizeof(double)) sums.sum[j] = sums.sum[j] + sums.error[j];
            if (call.divisor != 1) sums.sum[j] = V::divided(sums.sum[j], call.divisor);
            V::store_narrowed(dst + at + j * V::lanes, sums.sum[j]);
        }
    }
    return at;
}

/* Add the terms of whole tiles to one sum, from term `i` on; return the next term. */
template <class V, int count, class T, class Steps>
ON_TARGET BCAST_INLINE ptrdiff_t add_tiles(const bcast_folding &given, ptrdiff_t at, Steps steps, bcast_folded *onto)
{
    const bcast_folding call = given;
    FoldedTile<V, count> tile;
    FoldedSums<V, count> sums = {};
    double each[2][count * V::lanes];

    if (at + count * V::lanes > call.n) return at;
    for (; at + count * V::lanes <= call.n; at += count * V::lanes) {
        compute_terms<V, count, T>(call, 0, at, tile, steps);
        add_terms<V, count, T>(tile, sums);
    }
    memcpy(each, &sums, sizeof(sums));
    for (int i = 0; i < count * V::lanes; i++) {
        add_exactly(onto->sum, onto->error, each[0][i]);
        onto->error += each[1][i];
    }
    return at;
}

/* ---- Extremes ---- */

template <class V, bool greatest>
ON_TARGET BCAST_INLINE typename V::Items better(typename V::Items x, typename V::Items y)
{
    if constexpr (greatest) return V::greater(x, y);
    else return V::less(x, y);
}

/* Find the extremes of whole tiles, from result `i` on; of equal items, the last one, as in NumPy. */
template <class V, int count, class T, bool greatest, class Steps>
ON_TARGET BCAST_INLINE ptrdiff_t find_in_tiles(const bcast_folding &given, ptrdiff_t at, Steps steps)
{
    const bcast_folding call = given;
    T *dst = static_cast<T *>(call.dst);
    FoldedTile<V, count> tile, best;

    for (; at + count * V::lanes <= call.n; at += count * V::lanes) {
        compute_terms<V, count, T>(call, 0, at, best, steps);
        for (ptrdiff_t k = 1; k < call.depth; k++) {
            fetch_terms<V, count, T>(call, k, at);
            compute_terms<V, count, T>(call, k, at, tile, steps);
            for (int j = 0; j < count; j++) best.x[j] = better<V, greatest>(best.x[j], tile.x[j]);
        }
        memcpy(dst + at, &best, sizeof(best));
    }
    return at;
}

/* Find the extreme of the terms of whole tiles, from term `i` on, and of the earlier terms. */
template <class V, int count, class T, bool greatest, class Steps>
ON_TARGET BCAST_INLINE ptrdiff_t find_along_tiles(
    const bcast_folding &given, ptrdiff_t at, Steps steps, bcast_folded *onto)
{
    const bcast_folding call = given;
    const T found = static_cast<T>(onto->extreme);
    FoldedTile<V, count> tile, best;
    T each[count * V::lanes];

    if (at + count * V::lanes > call.n) return at;
    for (int j = 0; j < count; j++) best.x[j] = V::repeated(found);
    for (; at + count * V::lanes <= call.n; at += count * V::lanes) {
        compute_terms<V, count, T>(call, 0, at, tile, steps);
        for (int j = 0; j < count; j++) best.x[j] = better<V, greatest>(best.x[j], tile.x[j]);
    }
    memcpy(each, &best, sizeof(best));
    T extreme = found;
    for (int i = 0; i < count * V::lanes; i++) extreme = better<FoldedItem<T>, greatest>(extreme, each[i]);
    onto->extreme = extreme;
    return at;
}

/* ---- Calls ---- */

/* Compute results, or continue with one, by tiles of such vectors, from item `i` on; return the next item. */
template <class V, int count, class T, class Steps>
ON_TARGET BCAST_INLINE ptrdiff_t fold_tiles(
    const bcast_folding &call, ptrdiff_t at, Steps steps, bcast_folded *onto)
{
    if (call.fold == bcast_fold_sum)
        return onto ? add_tiles<V, count, T>(call, at, steps, onto) : sum_tiles<V, count, T>(call, at, steps);
    if (call.fold == bcast_fold_greatest)
        return onto ? find_along_tiles<V, count, T, true>(call, at, steps, onto)
                    : find_in_tiles<V, count, T, true>(call, at, steps);
    return onto ? find_along_tiles<V, count, T, false>(call, at, steps, onto)
                : find_in_tiles<V, count, T, false>(call, at, steps);
}

/* The same for the few items after whole tiles. */
template <class T>
ON_TARGET BCAST_APART void fold_last_items(const bcast_folding &call, ptrdiff_t at, bcast_folded *onto)
{
#ifdef __GNUC__
    at = fold_tiles<FoldedVector<T>, 1, T>(call, at, KnownSteps<>{}, onto);
#endif
    fold_tiles<FoldedItem<T>, 1, T>(call, at, KnownSteps<>{}, onto);
}

/* The same for all items. */
template <class T, class Steps>
ON_TARGET BCAST_APART void fold_items(const bcast_folding &call, Steps steps, bcast_folded *onto)
{
    ptrdiff_t at = 0;

#ifdef __GNUC__
    at = fold_tiles<FoldedVector<T>, 4, T>(call, at, steps, onto);
#endif
    if (at < call.n) fold_last_items<T>(call, at, onto);
}

/* Whether a call has exactly these functions. */
template <int... functions>
BCAST_INLINE bool has_steps(const bcast_folding &call, KnownSteps<functions...>)
{
    int s = 0;
    return call.steps == sizeof...(functions) && ((call.functions[s++] == functions) && ...);
}

/* Compilers fuse the most frequent functions into one loop, on the targets of many CPUs. */
template <class T>
ON_TARGET BCAST_INLINE void fold_floats(const bcast_folding &call, bcast_folded *onto)
{
    if constexpr (!has_known_steps) {
        fold_items<T>(call, KnownSteps<>{}, onto);
        return;
    }
    constexpr KnownSteps<bcast_number_subtract, bcast_number_square> squared_difference;
    constexpr KnownSteps<bcast_number_subtract, bcast_number_absolute> absolute_difference;
    constexpr KnownSteps<bcast_number_multiply> product;
    constexpr KnownSteps<bcast_number_square> square;

    if (has_steps(call, squared_difference)) fold_items<T>(call, squared_difference, onto);
    else if (has_steps(call, absolute_difference)) fold_items<T>(call, absolute_difference, onto);
    else if (has_steps(call, product)) fold_items<T>(call, product, onto);
    else if (has_steps(call, square)) fold_items<T>(call, square, onto);
    else fold_items<T>(call, KnownSteps<>{}, onto);
}

/* ---- Positions of extremes, among results computed row by row ---- */

/* Update the extremes of columns, and the numbers of their rows, by row `k`. The first of equal items counts. */
template <class T, class Position, bool greatest>
ON_TARGET BCAST_APART void keep_positions_of(
    ptrdiff_t n, const T *BCAST_RESTRICT row, Position k, T *BCAST_RESTRICT best, Position *BCAST_RESTRICT positions)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const bool wins = greatest ? row[i] > best[i] : row[i] < best[i];
        best[i] = wins ? row[i] : best[i];
        positions[i] = wins ? k : positions[i];
    }
}

template <class T, class Position>
ON_TARGET BCAST_INLINE void keep_positions_in(
    bool greatest, ptrdiff_t n, const T *row, ptrdiff_t k, T *best, Position *positions)
{
    if (k == 0) {
        memcpy(best, row, static_cast<size_t>(n) * sizeof(T));
        memset(positions, 0, static_cast<size_t>(n) * sizeof(Position));
    } else if (greatest) {
        keep_positions_of<T, Position, true>(n, row, static_cast<Position>(k), best, positions);
    } else {
        keep_positions_of<T, Position, false>(n, row, static_cast<Position>(k), best, positions);
    }
}

ON_TARGET static void keep_positions(const bcast_position_rows &rows)
{
    if (rows.size == 4)
        keep_positions_in(
            rows.greatest, rows.n, static_cast<const float *>(rows.row), rows.number, static_cast<float *>(rows.best),
            static_cast<int32_t *>(rows.positions));
    else
        keep_positions_in(
            rows.greatest, rows.n, static_cast<const double *>(rows.row), rows.number,
            static_cast<double *>(rows.best), static_cast<int64_t *>(rows.positions));
}

/* The extreme of a row of at least one item, and of the earlier rows. */
template <class T, bool greatest>
ON_TARGET BCAST_INLINE T extreme_of_row(ptrdiff_t n, const T *row, T found)
{
    ptrdiff_t at = 0;

#ifdef __GNUC__
    using V = FoldedVector<T>;
    constexpr int count = 4;
    if (n >= count * V::lanes) {
        typename V::Items best[count];
        T each[count * V::lanes];

        for (int j = 0; j < count; j++) best[j] = V::repeated(found);
        for (; at + count * V::lanes <= n; at += count * V::lanes)
            for (int j = 0; j < count; j++) best[j] = better<V, greatest>(best[j], items_of_row<V>(row + at, j));
        memcpy(each, best, sizeof(best));
        for (int i = 0; i < count * V::lanes; i++) found = better<FoldedItem<T>, greatest>(found, each[i]);
    }
#endif
    for (; at < n; at++) found = better<FoldedItem<T>, greatest>(found, row[at]);
    return found;
}

template <class T, bool greatest>
ON_TARGET BCAST_APART void find_position_in(ptrdiff_t n, const T *row, ptrdiff_t begin, bcast_folded *onto)
{
    const T before = static_cast<T>(onto->extreme), found = extreme_of_row<T, greatest>(n, row, before);
    ptrdiff_t at = 0;

    if (!(greatest ? found > before : found < before)) return;      /* also if it is NaN */
    while (row[at] != found) at++;
    onto->extreme = found;
    onto->count = begin + at;
}

ON_TARGET static void find_position(const bcast_position_rows &rows, bcast_folded *onto)
{
    if (rows.size == 4) {
        const float *row = static_cast<const float *>(rows.row);
        if (rows.greatest) find_position_in<float, true>(rows.n, row, rows.number, onto);
        else find_position_in<float, false>(rows.n, row, rows.number, onto);
    } else {
        const double *row = static_cast<const double *>(rows.row);
        if (rows.greatest) find_position_in<double, true>(rows.n, row, rows.number, onto);
        else find_position_in<double, false>(rows.n, row, rows.number, onto);
    }
}

template <class T>
ON_TARGET BCAST_INLINE void take_roots_of(ptrdiff_t n, T *items)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        if constexpr (sizeof(T) == sizeof(float)) items[i] = sqrtf(items[i]);
        else items[i] = sqrt(items[i]);
    }
}

ON_TARGET static void take_roots(int size, ptrdiff_t n, void *items)
{
    if (size == 4) take_roots_of(n, static_cast<float *>(items));
    else take_roots_of(n, static_cast<double *>(items));
}

ON_TARGET static void fold(const bcast_folding &call, bcast_folded *onto)
{
    if (call.compares) fold_truths(call, onto);
    else if (call.size == 4) fold_floats<float>(call, onto);
    else fold_floats<double>(call, onto);
}
