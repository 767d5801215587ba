/* Folds of comparisons: whether any or all of some hold, or how many do. Items are compared by whole registers, and
   truths stay there, as wide as the items, until all terms of a result have been read.

   Floats and integers of each size have `equal` and `less`, and floats `less_equal`: any other comparison is one of
   these with exchanged operands, or its complement, or both. Signed and unsigned integers of a size share `equal`. */

struct Equal {
    template <class V> ON_TARGET BCAST_INLINE auto of(V x, V y) { return x == y; }
};

struct Less {
    template <class V> ON_TARGET BCAST_INLINE auto of(V x, V y) { return x < y; }
};

struct LessEqual {
    template <class V> ON_TARGET BCAST_INLINE auto of(V x, V y) { return x <= y; }
};

/* Single items: a truth is 0 or -1, as in vectors. */
template <class T>
struct ComparedItem {
    using Items = T;
    using Truths = int64_t;
    static constexpr int lanes = 1;

    using Count = uint64_t;

    ON_TARGET BCAST_INLINE Items repeated(T x) { return x; }
    template <class Compare>
    ON_TARGET BCAST_INLINE Truths compared(Items x, Items y) { return Compare::of(x, y) ? -1 : 0; }
    ON_TARGET BCAST_INLINE void store_bools(uint8_t *dst, Truths truths) { *dst = truths & 1; }
};

#ifdef __GNUC__
template <int size> struct IntegersOf;
template <> struct IntegersOf<1> { using Signed = int8_t; using Unsigned = uint8_t; };
template <> struct IntegersOf<2> { using Signed = int16_t; using Unsigned = uint16_t; };
template <> struct IntegersOf<4> { using Signed = int32_t; using Unsigned = uint32_t; };
template <> struct IntegersOf<8> { using Signed = int64_t; using Unsigned = uint64_t; };

/* The items of a register, and their truths. */
template <class T>
struct ComparedVector {
    static constexpr int lanes = register_bytes / static_cast<int>(sizeof(T));
    using Truth = typename IntegersOf<sizeof(T)>::Signed;
    using Count = typename IntegersOf<sizeof(T)>::Unsigned;
    using Items = Vector<T, lanes>;
    using Truths = Vector<Truth, lanes>;

    ON_TARGET BCAST_INLINE Items repeated(T x) { return x - Items{}; }
    template <class Compare>
    ON_TARGET BCAST_INLINE Truths compared(Items x, Items y) { return bits_as<Truths>(Compare::of(x, y)); }

    ON_TARGET BCAST_INLINE void store_bools(uint8_t *dst, Truths truths)
    {
        typedef int8_t Bools __attribute__((vector_size(lanes)));
        const Bools bools = __builtin_convertvector(truths & 1, Bools);
        memcpy(dst, &bools, sizeof(bools));
    }
};
#endif

/* Vector number `j` of a row. */
template <class V, class T>
ON_TARGET BCAST_INLINE typename V::Items compared_items(const T *row, int j)
{
    typename V::Items items;
    memcpy(&items, row + j * V::lanes, sizeof(items));
    return items;
}

/* Compare term number `k` of a tile: each operand has a row of items, or a single item. */
template <class V, int count, class T, class Compare>
ON_TARGET BCAST_INLINE void compare_terms(
    const bcast_folding &call, ptrdiff_t k, ptrdiff_t at, typename V::Truths (&truths)[count])
{
    const char *of_term[] = {
        call.operands[0] + k * call.depth_strides[0] + at * call.strides[0],
        call.operands[1] + k * call.depth_strides[1] + at * call.strides[1],
    };
    const T *first = reinterpret_cast<const T *>(of_term[0]), *second = reinterpret_cast<const T *>(of_term[1]);

    if (!call.strides[1]) {
        const typename V::Items y = V::repeated(*second);
        if (!call.strides[0]) {
            const typename V::Truths same = V::template compared<Compare>(V::repeated(*first), y);
            for (int j = 0; j < count; j++) truths[j] = same;
        } else {
            for (int j = 0; j < count; j++) truths[j] = V::template compared<Compare>(compared_items<V>(first, j), y);
        }
    } else if (!call.strides[0]) {
        const typename V::Items x = V::repeated(*first);
        for (int j = 0; j < count; j++) truths[j] = V::template compared<Compare>(x, compared_items<V>(second, j));
    } else {
        for (int j = 0; j < count; j++)
            truths[j] = V::template compared<Compare>(compared_items<V>(first, j), compared_items<V>(second, j));
    }
}

/* Find whether any, or all, truths of a result hold, by whole tiles from one result on; return the next result.
   All hold if the complement of none does. */
template <class V, int count, class T, class Compare>
ON_TARGET BCAST_INLINE ptrdiff_t decide_tiles(const bcast_folding &given, ptrdiff_t at)
{
    const bcast_folding call = given;       /* a copy, which no store can change */
    const bool finds_any = call.fold == bcast_fold_any, flips = finds_any == static_cast<bool>(call.complements);
    const typename V::Truths none{}, flip = flips ? ~none : none;
    uint8_t *dst = static_cast<uint8_t *>(call.dst);
    typename V::Truths truths[count], found[count];

    for (; at + count * V::lanes <= call.n; at += count * V::lanes) {
        for (int j = 0; j < count; j++) found[j] = none;
        for (ptrdiff_t k = 0; k < call.depth; k++) {
            compare_terms<V, count, T, Compare>(call, k, at, truths);
            for (int j = 0; j < count; j++) found[j] |= truths[j] ^ flip;
        }
        for (int j = 0; j < count; j++) V::store_bools(dst + at + j * V::lanes, finds_any ? found[j] : ~found[j]);
    }
    return at;
}

/* Count the truths of each result, by whole tiles. Counts of bytes have 8 bits: callers pass at most 255 terms. */
template <class V, int count, class T, class Compare>
ON_TARGET BCAST_INLINE ptrdiff_t count_tiles(const bcast_folding &given, ptrdiff_t at)
{
    using Count = typename V::Count;
    const bcast_folding call = given;
    int64_t *dst = static_cast<int64_t *>(call.dst);
    typename V::Truths truths[count], found[count];
    Count counts[count * V::lanes];

    for (; at + count * V::lanes <= call.n; at += count * V::lanes) {
        for (int j = 0; j < count; j++) found[j] = typename V::Truths{};
        for (ptrdiff_t k = 0; k < call.depth; k++) {
            compare_terms<V, count, T, Compare>(call, k, at, truths);
            for (int j = 0; j < count; j++) found[j] -= truths[j];
        }
        memcpy(counts, found, sizeof(found));
        for (int i = 0; i < count * V::lanes; i++) {
            const int64_t n = static_cast<int64_t>(counts[i]);
            dst[at + i] = call.complements ? call.depth - n : n;
        }
    }
    return at;
}

/* Count the truths of all terms of one result, by whole tiles from one term on; return the next term. */
template <class V, int count, class T, class Compare>
ON_TARGET BCAST_INLINE ptrdiff_t count_along_tiles(const bcast_folding &given, ptrdiff_t at, bcast_folded *onto)
{
    using Count = typename V::Count;
    constexpr ptrdiff_t most = sizeof(Count) == 1 ? 255 : sizeof(Count) == 2 ? 65535 : INT32_MAX;
    const bcast_folding call = given;
    typename V::Truths truths[count], found[count];
    Count counts[count * V::lanes];
    int64_t all = 0;

    while (at + count * V::lanes <= call.n) {
        for (int j = 0; j < count; j++) found[j] = typename V::Truths{};
        for (ptrdiff_t i = 0; i < most && at + count * V::lanes <= call.n; i++, at += count * V::lanes) {
            compare_terms<V, count, T, Compare>(call, 0, at, truths);
            for (int j = 0; j < count; j++) found[j] -= truths[j];
        }
        memcpy(counts, found, sizeof(found));
        for (int i = 0; i < count * V::lanes; i++) all += static_cast<int64_t>(counts[i]);
    }
    onto->count += all;
    return at;
}

/* Fold the truths of tiles of such vectors, from one item on; return the next item. */
template <class V, int count, class T, class Compare>
ON_TARGET BCAST_INLINE ptrdiff_t fold_truths_of_tiles(const bcast_folding &call, ptrdiff_t at, bcast_folded *onto)
{
    if (onto) return count_along_tiles<V, count, T, Compare>(call, at, onto);
    if (call.fold == bcast_fold_count) return count_tiles<V, count, T, Compare>(call, at);
    return decide_tiles<V, count, T, Compare>(call, at);
}

template <class T, class Compare>
ON_TARGET BCAST_APART void fold_truths_of(const bcast_folding &call, bcast_folded *onto)
{
    ptrdiff_t at = 0;

#ifdef __GNUC__
    at = fold_truths_of_tiles<ComparedVector<T>, sizeof(T) < 4 ? 4 : 8, T, Compare>(call, at, onto);
    at = fold_truths_of_tiles<ComparedVector<T>, 1, T, Compare>(call, at, onto);
#endif
    fold_truths_of_tiles<ComparedItem<T>, 1, T, Compare>(call, at, onto);
    if (onto && call.complements) onto->count = call.n - onto->count;
}

/* A comparison in terms of the ones above: with exchanged operands, and as the complement. */
struct BaseComparison {
    enum Base { equal_items, less_items, less_equal_items };
    Base base;
    bool exchanges, complements;

    static BaseComparison of(int function, bool of_floats)
    {
        switch (function) {
        case bcast_number_equal: return {equal_items, false, false};
        case bcast_number_not_equal: return {equal_items, false, true};
        case bcast_number_less: return {less_items, false, false};
        case bcast_number_greater: return {less_items, true, false};
        case bcast_number_less_equal:
            if (of_floats) return {less_equal_items, false, false};
            return {less_items, true, true};
        default:        /* bcast_number_greater_equal */
            if (of_floats) return {less_equal_items, true, false};
            return {less_items, false, true};
        }
    }
};

template <class T>
ON_TARGET BCAST_INLINE void fold_truths_of_floats(
    BaseComparison::Base base, const bcast_folding &call, bcast_folded *onto)
{
    if (base == BaseComparison::equal_items) fold_truths_of<T, Equal>(call, onto);
    else if (base == BaseComparison::less_items) fold_truths_of<T, Less>(call, onto);
    else fold_truths_of<T, LessEqual>(call, onto);
}

template <class Signed, class Unsigned>
ON_TARGET BCAST_INLINE void fold_truths_of_integers(
    BaseComparison::Base base, const bcast_folding &call, bcast_folded *onto)
{
    if (base == BaseComparison::equal_items) fold_truths_of<Unsigned, Equal>(call, onto);
    else if (call.kind == 'i') fold_truths_of<Signed, Less>(call, onto);
    else fold_truths_of<Unsigned, Less>(call, onto);
}

ON_TARGET static void fold_truths(const bcast_folding &given, bcast_folded *onto)
{
    const BaseComparison comparison = BaseComparison::of(given.functions[0], given.kind == 'f');
    const int first = comparison.exchanges, second = !comparison.exchanges;
    const char *const operands[] = {given.operands[first], given.operands[second]};
    const ptrdiff_t strides[] = {given.strides[first], given.strides[second]};
    const ptrdiff_t depth_strides[] = {given.depth_strides[first], given.depth_strides[second]};
    bcast_folding call = given;
    bcast_folded found = {};

    call.operands = operands;
    call.strides = strides;
    call.depth_strides = depth_strides;
    call.complements = comparison.complements;

    bcast_folded *const counts = onto ? &found : nullptr;
    if (call.kind == 'f' && call.size == 4) fold_truths_of_floats<float>(comparison.base, call, counts);
    else if (call.kind == 'f') fold_truths_of_floats<double>(comparison.base, call, counts);
    else if (call.size == 1) fold_truths_of_integers<int8_t, uint8_t>(comparison.base, call, counts);
    else if (call.size == 2) fold_truths_of_integers<int16_t, uint16_t>(comparison.base, call, counts);
    else if (call.size == 4) fold_truths_of_integers<int32_t, uint32_t>(comparison.base, call, counts);
    else fold_truths_of_integers<int64_t, uint64_t>(comparison.base, call, counts);
    if (onto) onto->count += found.count;
}
