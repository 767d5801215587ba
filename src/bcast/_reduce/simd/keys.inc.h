/* The keys of the operations of `combine.h`: templates over an operation of `operations.inc.h`, for its kernels of rows
   and runs (`combine_rows.inc.h`, `combine_runs.inc.h`). `target.inc.h` includes these files for each target.

   Idempotent operations use vectors of the same length on all targets. The last vector of a run ends with the run, so
   it may combine some items twice. Other operations use plain loops, and so do compilers without vectors. */

/* ---- Items and accumulators ---- */

template <class T>
BCAST_INLINE T read(const char *at)
{
    T value;
    memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
BCAST_INLINE void write(char *at, T value)
{
    memcpy(at, &value, sizeof value);
}

template <class Operation> constexpr ptrdiff_t item_bytes = sizeof(typename Operation::Item);
template <class Operation> constexpr ptrdiff_t accumulator_bytes = sizeof(typename Operation::Accumulator);

/* The key of a term, or the two keys of a pair. */
template <class Operation> using OneKey = typename Operation::template Keys<typename Operation::Key>;

template <class Operation>
BCAST_INLINE OneKey<Operation> item_at(const char *at)
{
    return Operation::of_item(read<typename Operation::Item>(at));
}

/* The sink after `by` bytes. */
BCAST_INLINE bcast_sink moved(bcast_sink dst, ptrdiff_t by)
{
    return {dst.mode, dst.sum + by, dst.error + by};
}

/* The accumulator of a sink at an offset in bytes. A pair stores its second part in place of the error term. */
template <class Operation>
BCAST_INLINE OneKey<Operation> accumulator_at(const bcast_sink *from, ptrdiff_t at)
{
    using Accumulator = typename Operation::Accumulator;
    if constexpr (Operation::is_pair)
        return Operation::of_accumulators(read<Accumulator>(from->sum + at), read<Accumulator>(from->error + at));
    else
        return Operation::of_accumulator(read<Accumulator>(from->sum + at));
}

template <class Operation>
BCAST_INLINE void write_at(char *dst, char *second, OneKey<Operation> key)
{
    using Accumulator = typename Operation::Accumulator;
    if constexpr (Operation::is_pair) {
        write<Accumulator>(dst, Operation::First::to_accumulator(key.first));
        write<Accumulator>(second, Operation::Second::to_accumulator(key.second));
    } else {
        write<Accumulator>(dst, Operation::to_accumulator(key));
    }
}

/* Write key number `i` to a sink: as a result of the size of an item if these are narrower than accumulators, or as an
   accumulator. */
template <class Operation, bool as_item>
BCAST_INLINE void put_key(char *dst, char *second, ptrdiff_t i, OneKey<Operation> key)
{
    using Item = typename Operation::Item;
    constexpr ptrdiff_t size = accumulator_bytes<Operation>;
    if constexpr (as_item && !Operation::is_pair) write<Item>(dst + i * item_bytes<Operation>, static_cast<Item>(key));
    else write_at<Operation>(dst + i * size, second + i * size, key);
}

/* Whether kernels narrow results themselves. */
template <class Operation>
BCAST_INLINE bool narrows(int mode)
{
    return Operation::writes_items && item_bytes<Operation> < accumulator_bytes<Operation> && mode == BCAST_WRITE;
}

/* ---- Accumulators with each other ---- */

/* Accumulator by accumulator: dst = both dst and src. */
template <class Operation>
void combine_accumulators(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    constexpr ptrdiff_t size = accumulator_bytes<Operation>;
    const bcast_sink to = *dst, from = *src;

    for (ptrdiff_t at = 0; at < n * size; at += size)
        write_at<Operation>(
            to.sum + at, to.error + at,
            Operation::both(accumulator_at<Operation>(&to, at), accumulator_at<Operation>(&from, at)));
}

/* Combine each group's `length` rows of `n` accumulators, which are few, to contiguous results. */
template <class Operation>
void fold(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    constexpr ptrdiff_t size = accumulator_bytes<Operation>;
    bcast_sink dst = *all, src = *all;

    for (ptrdiff_t group = 0; group < groups; group++, src = moved(src, length * n * size))
        for (ptrdiff_t k = 0; k < n; k++, dst = moved(dst, size)) {
            auto key = accumulator_at<Operation>(&src, k * size);
            for (ptrdiff_t i = 1; i < length; i++)
                key = Operation::both(key, accumulator_at<Operation>(&src, (i * n + k) * size));
            write_at<Operation>(dst.sum, dst.error, key);
        }
}

/* Whether an operation uses vectors, which some compilers lack. */
template <class Operation> constexpr bool goes_by_vectors = BCAST_VECTORS && Operation::is_idempotent;

#if BCAST_VECTORS

/* ---- Vectors of keys ---- */

/* Vectors of 16 bytes of items, and of 32, which are two registers on some targets. */
template <class Operation> using ShortItems = Vector<typename Operation::Key, 16 / sizeof(typename Operation::Key)>;
template <class Operation> using LongItems = Vector<typename Operation::Key, 32 / sizeof(typename Operation::Key)>;

/* The keys of such vectors. */
template <class Operation, class V>
struct KeysOf {
    using Type = typename Operation::template Keys<V>;
};
template <class Operation, class Half>
struct KeysOf<Operation, Two<Half>> {
    using Type = Two<typename Operation::template Keys<Half>>;
};
template <class Operation> using Short = typename KeysOf<Operation, ShortItems<Operation>>::Type;
template <class Operation> using Long = typename KeysOf<Operation, LongItems<Operation>>::Type;

/* The vector of items, or of accumulators, of a vector of keys; and its size. */
template <class V> struct ItemsOf { using Type = V; };
template <class V> struct ItemsOf<PairOf<V>> { using Type = V; };
template <class V> struct ItemsOf<Two<V>> { using Type = Two<typename ItemsOf<V>::Type>; };
template <class V> constexpr ptrdiff_t bytes_of = sizeof(typename ItemsOf<V>::Type);

template <class Operation, class V>
BCAST_INLINE V keys_at(const char *at)
{
    if constexpr (is_two<V>) {
        using Half = decltype(V::low);
        return {keys_at<Operation, Half>(at), keys_at<Operation, Half>(at + bytes_of<Half>)};
    } else {
        return Operation::of_item(load<typename ItemsOf<V>::Type>(at));
    }
}

template <class Operation, class V>
BCAST_INLINE V accumulators_at(const bcast_sink *from, ptrdiff_t at)
{
    if constexpr (is_two<V>) {
        using Half = decltype(V::low);
        return {
            accumulators_at<Operation, Half>(from, at), accumulators_at<Operation, Half>(from, at + bytes_of<Half>)};
    } else if constexpr (Operation::is_pair) {
        using Items = typename ItemsOf<V>::Type;
        return Operation::of_accumulators(load<Items>(from->sum + at), load<Items>(from->error + at));
    } else {
        return Operation::of_accumulator(load<V>(from->sum + at));
    }
}

template <class Operation, class V>
BCAST_INLINE void write_keys(const bcast_sink *to, ptrdiff_t at, V keys)
{
    if constexpr (is_two<V>) {
        write_keys<Operation>(to, at, keys.low);
        write_keys<Operation>(to, at + bytes_of<decltype(keys.low)>, keys.high);
    } else if constexpr (Operation::is_pair) {
        store(to->sum + at, Operation::First::to_accumulator(keys.first));
        store(to->error + at, Operation::Second::to_accumulator(keys.second));
    } else {
        store(to->sum + at, Operation::to_accumulator(keys));
    }
}

template <class Operation, class V>
BCAST_INLINE V both(V a, V b)
{
    if constexpr (is_two<V>) return {both<Operation>(a.low, b.low), both<Operation>(a.high, b.high)};
    else return Operation::both(a, b);
}

/* The combination of both halves of long keys. */
template <class Operation>
BCAST_INLINE Short<Operation> both_halves(Long<Operation> keys)
{
    using Half = ShortItems<Operation>;
    using Halves = Short<Operation>;

    if constexpr (is_two<Long<Operation>>)
        return Operation::both(keys.low, keys.high);
    else if constexpr (Operation::is_pair)
        return Operation::both(
            Halves{half_of<Half>(keys.first, 0), half_of<Half>(keys.second, 0)},
            Halves{half_of<Half>(keys.first, 1), half_of<Half>(keys.second, 1)});
    else
        return Operation::both(half_of<Half>(keys, 0), half_of<Half>(keys, 1));
}

#endif
