/* The kernels of runs for the operations of `combine.h`: the items of each run are combined to one. `keys.inc.h` has
   the vectors. */

/* ---- Runs, by plain loops ---- */

/* Combine each of `count` contiguous runs of few items. Compilers vectorise this loop. */
template <class Operation, int length, bool as_items>
BCAST_INLINE void combine_dense_runs(
    char *BCAST_RESTRICT dst, char *BCAST_RESTRICT second, const char *BCAST_RESTRICT src, ptrdiff_t count)
{
    constexpr ptrdiff_t size = item_bytes<Operation>;

    for (ptrdiff_t run = 0; run < count; run++)
        put_key<Operation, as_items>(
            dst, second, run, column_at<Operation, length>(src + run * length * size, size, 4 * size));
}

/* Combine a run to several keys, one for each stream. Streams combine items in turn, because the steps of one stream
   form a dependency chain. */
template <class Operation, int streams>
BCAST_INLINE void combine_streams(OneKey<Operation> *dst, const char *src, ptrdiff_t length)
{
    constexpr ptrdiff_t size = item_bytes<Operation>;
    OneKey<Operation> keys[streams];     /* local, so that they stay in registers */
    ptrdiff_t i = streams;

    for (int k = 0; k < streams; k++) keys[k] = item_at<Operation>(src + k * size);
    for (; i + streams <= length; i += streams)
        for (int k = 0; k < streams; k++) keys[k] = Operation::both(keys[k], item_at<Operation>(src + (i + k) * size));

    for (int k = 0; k < streams; k++) dst[k] = keys[k];
    BCAST_NOT_UNROLLED
    for (ptrdiff_t k = 0; i < length; i++, k++) dst[k] = Operation::both(dst[k], item_at<Operation>(src + i * size));
}

/* Combine each run, in which 1, 2 or 4 items are interleaved. There are at least as many streams as these. */
template <class Operation, int streams>
BCAST_APART void combine_runs_by_streams(const bcast_term_runs *all, const bcast_sink *dst)
{
    const bcast_term_runs runs = *all;
    const bool adds = dst->mode == BCAST_ADD, as_items = narrows<Operation>(dst->mode);

    for (ptrdiff_t run = 0; run < runs.count; run++) {
        OneKey<Operation> keys[streams];
        combine_streams<Operation, streams>(keys, runs.src + run * runs.stride, runs.length);
        for (int n = streams / 2; n >= runs.interleave; n /= 2)
            for (int k = 0; k < n; k++) keys[k] = Operation::both(keys[k], keys[k + n]);

        for (int k = 0; k < streams && k < runs.interleave; k++) {
            const ptrdiff_t to = run * runs.interleave + k;
            if (adds)
                keys[k] = Operation::both(accumulator_at<Operation>(dst, to * accumulator_bytes<Operation>), keys[k]);
            if (as_items) put_key<Operation, true>(dst->sum, dst->error, to, keys[k]);
            else put_key<Operation, false>(dst->sum, dst->error, to, keys[k]);
        }
    }
}

/* Combine runs item by item: products, because a vector of products costs several times as much as one product; and
   runs of idempotent operations that have few items, or four interleaved ones. */
template <class Operation>
BCAST_INLINE void combine_runs_by_items(const bcast_term_runs *runs, const bcast_sink *dst)
{
    constexpr bool has_many = !goes_by_vectors<Operation> && item_bytes<Operation> >= 4;

    if (has_many && runs->length >= 64) combine_runs_by_streams<Operation, has_many ? 16 : 4>(runs, dst);
    else if (runs->length >= 8 || runs->interleave == 4) combine_runs_by_streams<Operation, 4>(runs, dst);
    else if (runs->interleave == 2) combine_runs_by_streams<Operation, 2>(runs, dst);
    else combine_runs_by_streams<Operation, 1>(runs, dst);
}

#if BCAST_VECTORS

/* ---- Runs, by vectors: several at a time, one for each group of interleaved items in a vector ----

   Each run is combined to one vector of keys, and these vectors are combined in pairs. Four groups, from four runs:

       |a a a a| |b b b b| |c c c c| |d d d d|     ->      |a b a b| |c d c d|     ->      |a b c d|          */

/* The keys of a run of 4 to 7 bytes, of 8 to 15, and of 16 to 31. Some of them are repeated. */
template <class Operation>
BCAST_INLINE Short<Operation> keys_of_4_bytes(const char *src, ptrdiff_t nbytes)
{
    const uint64_t first = read<uint32_t>(src), last = read<uint32_t>(src + nbytes - 4), both = first | last << 32;
    return Operation::of_item(bits_as<ShortItems<Operation>>(Vector<uint64_t, 2>{both, both}));
}

template <class Operation>
BCAST_INLINE Short<Operation> keys_of_8_bytes(const char *src, ptrdiff_t nbytes)
{
    return Operation::of_item(bits_as<ShortItems<Operation>>(words_at<uint64_t>(src, nbytes)));
}

template <class Operation>
BCAST_INLINE Short<Operation> keys_of_16_bytes(const char *src, ptrdiff_t nbytes)
{
    using Keys = Short<Operation>;
    return Operation::both(keys_at<Operation, Keys>(src), keys_at<Operation, Keys>(src + nbytes - 16));
}

/* The keys of a run of 32 bytes or more. */
template <class Operation>
BCAST_INLINE Short<Operation> keys_of_run(const char *src, ptrdiff_t nbytes)
{
    using Keys = Long<Operation>;
    constexpr ptrdiff_t step = bytes_of<Keys>;
    Keys keys = keys_at<Operation, Keys>(src);
    ptrdiff_t at = step;

    for (; at + step <= nbytes; at += step) keys = both<Operation>(keys, keys_at<Operation, Keys>(src + at));
    if (at < nbytes) keys = both<Operation>(keys, keys_at<Operation, Keys>(src + nbytes - step));
    return both_halves<Operation>(keys);
}

/* Whether the keys of a truth decide on the result: one of them is set, or all of them if there are several results. */
template <class Operation, bool is_one, class V>
BCAST_INLINE bool are_decisive(V keys)
{
    const auto bits = bits_as<Vector<uint64_t, 2>>(both_halves<Operation>(keys));
    return is_one ? (bits[0] | bits[1]) != 0 : (bits[0] & bits[1]) == static_cast<uint64_t>(-1);
}

/* The keys of a long run, in four streams, because the steps of one stream form a dependency chain. A truth stops
   early. `is_one` means that no items are interleaved. */
template <class Operation, bool is_one>
BCAST_APART Short<Operation> keys_of_long_run(const char *src, ptrdiff_t nbytes)
{
    using Keys = Long<Operation>;
    constexpr ptrdiff_t step = bytes_of<Keys>;
    ptrdiff_t at = 4 * step;
    Keys keys[4] = {        /* compilers turn a loop into narrower stores, which would delay the loads of vectors */
        keys_at<Operation, Keys>(src), keys_at<Operation, Keys>(src + step),
        keys_at<Operation, Keys>(src + 2 * step), keys_at<Operation, Keys>(src + 3 * step),
    };

    for (; at + 4 * step <= nbytes; at += 4 * step) {
        BCAST_UNROLL
        for (int i = 0; i < 4; i++)
            keys[i] = both<Operation>(keys[i], keys_at<Operation, Keys>(src + at + i * step));
        if constexpr (Operation::is_truth) {
            if (at % 1024 == 0) {
                keys[0] = both<Operation>(both<Operation>(keys[0], keys[1]), both<Operation>(keys[2], keys[3]));
                if (are_decisive<Operation, is_one>(keys[0])) break;
            }
        }
    }
    const Keys all = both<Operation>(both<Operation>(keys[0], keys[1]), both<Operation>(keys[2], keys[3]));
    const auto last = keys_of_run<Operation>(src + nbytes - 4 * step, 4 * step);
    return Operation::both(both_halves<Operation>(all), last);
}

/* The numbers below n, as a list for the compiler. */
template <int... i> struct Numbers {};
template <int n, int... i> struct NumbersBelow : NumbersBelow<n - 1, n - 1, i...> {};
template <int... i> struct NumbersBelow<0, i...> { using Type = Numbers<i...>; };

/* In each lane of 16 bytes, items of `size` bytes in turn from the lower half of a and of b, or from the upper halves:
   a0 b0 a1 b1 ... */
template <int size, bool upper>
struct FromBoth {
    static constexpr int from(int i, int of_b)
    {
        const int lane = i / 16 * 16, half = upper ? 8 : 0, item = i % 16 / size;
        return lane + half + item / 2 * size + i % size + (item % 2 ? of_b : 0);
    }
};

/* The same from both halves of a lane. */
template <int size>
struct FromHalves {
    static constexpr int from(int i, int)
    {
        const int lane = i / 16 * 16, item = i % 16 / size;
        return lane + item / 2 * size + i % size + (item % 2 ? 8 : 0);
    }
};

/* Bytes of a and b in some order: byte `i` is number `Order::from(i, of_b)`, where b has the numbers from `of_b` on. */
template <class Order, class V, int... i>
BCAST_INLINE V bytes_in_order(V a, V b, Numbers<i...>)
{
    constexpr int nbytes = sizeof(V);
    using Bytes = Vector<uint8_t, nbytes>;
#ifdef __clang__
    return (V) __builtin_shufflevector((Bytes) a, (Bytes) b, Order::from(i, nbytes)...);
#else
    return (V) __builtin_shuffle((Bytes) a, (Bytes) b, Bytes{static_cast<uint8_t>(Order::from(i, nbytes))...});
#endif
}

template <class Order, class V>
BCAST_INLINE V in_order(V a, V b)
{
    if constexpr (is_two<V>) return {in_order<Order>(a.low, b.low), in_order<Order>(a.high, b.high)};
    else return bytes_in_order<Order>(a, b, typename NumbersBelow<sizeof(V)>::Type{});
}

template <class Order, class V>
BCAST_INLINE PairOf<V> in_order(PairOf<V> a, PairOf<V> b)
{
    return {in_order<Order>(a.first, b.first), in_order<Order>(a.second, b.second)};
}

/* Combine the neighbours of each lane in two vectors; the results of a and b alternate. */
template <class Operation, int size, class V>
BCAST_INLINE V combined_in_turn(V a, V b)
{
    return both<Operation>(in_order<FromBoth<size, false>>(a, b), in_order<FromBoth<size, true>>(a, b));
}

/* Combine `count` vectors, of `count` groups each, to one vector. */
template <class Operation, int count>
BCAST_INLINE Short<Operation> folded(const Short<Operation> *keys)
{
    if constexpr (count == 1) {
        return keys[0];
    } else {
        Short<Operation> pairs[count / 2];
        for (int i = 0; i < count / 2; i++)
            pairs[i] = combined_in_turn<Operation, 16 / count>(keys[2 * i], keys[2 * i + 1]);
        return folded<Operation, count / 2>(pairs);
    }
}

/* The same for `count` runs of 32 bytes, whose vectors stay in registers. */
template <class Operation, int group, int count>
BCAST_INLINE Short<Operation> folded_runs(const char *src, ptrdiff_t stride)
{
    if constexpr (count == 1) {
        return both_halves<Operation>(keys_at<Operation, Long<Operation>>(src));
    } else {
        const auto a = folded_runs<Operation, group, count / 2>(src, stride);
        const auto b = folded_runs<Operation, group, count / 2>(src + count / 2 * stride, stride);
        return combined_in_turn<Operation, group * count / 2>(a, b);
    }
}

/* Combine such runs, except for the last ones if these are too few for a vector; return the number of combined runs. */
template <class Operation, int group>
BCAST_APART ptrdiff_t combine_runs_of_one_vector(const bcast_term_runs *runs, const bcast_sink *sink)
{
    constexpr int at_once = 16 / group;
    const ptrdiff_t count = runs->count, stride = runs->stride;
    const bool adds = sink->mode == BCAST_ADD;
    const char *src = runs->src;
    bcast_sink dst = *sink;
    ptrdiff_t first = 0;

    for (; first + at_once <= count; first += at_once, src += at_once * stride, dst = moved(dst, 16)) {
        auto found = folded_runs<Operation, group, at_once>(src, stride);
        if (adds) found = Operation::both(accumulators_at<Operation, Short<Operation>>(&dst, 0), found);
        write_keys<Operation>(&dst, 0, found);
    }
    return first;
}

/* Half number `i` of long keys, 0 or 1. */
template <class Operation>
BCAST_INLINE Short<Operation> half_of_keys(Long<Operation> keys, int i)
{
    using Half = ShortItems<Operation>;
    if constexpr (is_two<Long<Operation>>) return i ? keys.high : keys.low;
    else if constexpr (Operation::is_pair) return {half_of<Half>(keys.first, i), half_of<Half>(keys.second, i)};
    else return half_of<Half>(keys, i);
}

/* The keys of contiguous runs of 8 or 16 bytes, from one long vector for each item of a run. */
template <class Operation, int nbytes, int count>
BCAST_INLINE Long<Operation> folded_dense_runs(const char *src)
{
    constexpr int group = item_bytes<Operation>, items = nbytes / group;
    if constexpr (count == 1) {
        const auto keys = keys_at<Operation, Long<Operation>>(src);
        if constexpr (nbytes == 16) return keys;
        else return in_order<FromHalves<group>>(keys, keys);
    } else {
        constexpr ptrdiff_t half = count / 2 * bytes_of<Long<Operation>>;
        const auto a = folded_dense_runs<Operation, nbytes, count / 2>(src);
        const auto b = folded_dense_runs<Operation, nbytes, count / 2>(src + half);
        return combined_in_turn<Operation, 16 / items * count / 2>(a, b);
    }
}

/* Combine dense runs of 8 or 16 bytes, which have 4 to 16 items. Each lane of a long vector has one or two runs; a
   block of runs fills all lanes with results. Return the number of combined runs; the rest is smaller than a block. */
template <class Operation, int nbytes>
BCAST_APART ptrdiff_t combine_dense_words(const bcast_term_runs *runs, const bcast_sink *sink)
{
    constexpr int group = item_bytes<Operation>, at_once = 32 / group, in_lane = 16 / nbytes;
    const bool adds = sink->mode == BCAST_ADD;
    const char *src = runs->src;
    bcast_sink dst = *sink;
    ptrdiff_t first = 0;

    for (; first + at_once <= runs->count; first += at_once, src += at_once * nbytes, dst = moved(dst, 32)) {
        const auto keys = folded_dense_runs<Operation, nbytes, nbytes / group>(src);
        const auto low = half_of_keys<Operation>(keys, 0), high = half_of_keys<Operation>(keys, 1);
        auto found = in_order<FromBoth<in_lane * group, false>>(low, high);
        auto next = in_order<FromBoth<in_lane * group, true>>(low, high);
        if (adds) {
            found = Operation::both(accumulators_at<Operation, Short<Operation>>(&dst, 0), found);
            next = Operation::both(accumulators_at<Operation, Short<Operation>>(&dst, 16), next);
        }
        write_keys<Operation>(&dst, 0, found);
        write_keys<Operation>(&dst, 16, next);
    }
    return first;
}

/* Combine runs by a loop for their length, if there is one; return the number of combined runs. */
template <class Operation, int group>
BCAST_INLINE ptrdiff_t combine_runs_of_few_bytes(const bcast_term_runs *runs, const bcast_sink *sink)
{
    const ptrdiff_t nbytes = runs->length * item_bytes<Operation>;
    if constexpr (unrolled && group == item_bytes<Operation>) {
        if (nbytes == 32) return combine_runs_of_one_vector<Operation, group>(runs, sink);
        if constexpr (group <= 4)
            if (nbytes == 16 && runs->stride == 16) return combine_dense_words<Operation, 16>(runs, sink);
        if constexpr (group == 1)
            if (nbytes == 8 && runs->stride == 8) return combine_dense_words<Operation, 8>(runs, sink);
    }
    return 0;
}

template <class Operation>
BCAST_INLINE void copy_accumulators(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t nbytes)
{
    memcpy(dst->sum, src->sum, nbytes);
    if constexpr (Operation::is_pair) memcpy(dst->error, src->error, nbytes);
}

/* Combine runs whose interleaved items have `group` bytes together: one for each group of a vector at a time. This is
   clearer whole: it has a line for each length of runs, and a copy for the last runs, which do not fill a vector. */
template <class Operation, int group>
BCAST_APART void combine_runs_by_vectors(const bcast_term_runs *all, const bcast_sink *sink)
{
    constexpr int at_once = 16 / group;
    const bcast_term_runs runs = *all;
    const ptrdiff_t nbytes = runs.length * item_bytes<Operation>;
    const bcast_sink all_dst = *sink;
    const bool adds = all_dst.mode == BCAST_ADD;
    Short<Operation> keys[at_once] = {};
    char last[32] = {0};        /* both parts of a pair */

    ptrdiff_t first = combine_runs_of_few_bytes<Operation, group>(all, sink);

    for (; first < runs.count; first += at_once) {
        const int count = runs.count - first < at_once ? static_cast<int>(runs.count - first) : at_once;
        const char *src = runs.src + first * runs.stride;
        const bool is_last = count < at_once;
        const bcast_sink dst = moved(all_dst, first * group);
        const bcast_sink to = {dst.mode, is_last ? last : dst.sum, is_last ? last + 16 : dst.error};

        const auto read_runs = [&](auto keys_of) BCAST_LAMBDA_INLINE {
            BCAST_NOT_UNROLLED
            for (int i = 0; i < count; i++) keys[i] = keys_of(src + i * runs.stride, nbytes);
        };
        if (nbytes < 8) read_runs(keys_of_4_bytes<Operation>);
        else if (nbytes < 16) read_runs(keys_of_8_bytes<Operation>);
        else if (nbytes < 32) read_runs(keys_of_16_bytes<Operation>);
        else if (nbytes < COMBINED_LONG_BYTES) read_runs(keys_of_run<Operation>);
        else read_runs(keys_of_long_run<Operation, group == item_bytes<Operation>>);

        auto found = folded<Operation, at_once>(keys);
        if (adds && is_last) copy_accumulators<Operation>(&to, &dst, count * group);
        if (adds) found = Operation::both(accumulators_at<Operation, Short<Operation>>(&to, 0), found);
        write_keys<Operation>(&to, 0, found);
        if (is_last) copy_accumulators<Operation>(&dst, &to, count * group);
    }
}

#endif

/* ---- Runs of any kind ---- */

/* Whether vectors combine all runs of `interleave` interleaved items, because these have at least 4 bytes; then no
   other loop is compiled for them. */
template <class Operation, int interleave>
constexpr bool always_go_by_vectors =
    goes_by_vectors<Operation> && 4 <= interleave * item_bytes<Operation> && interleave * item_bytes<Operation> <= 16;

template <class Operation, int interleave>
BCAST_INLINE void combine_runs_with(const bcast_term_runs *runs, const bcast_sink *dst)
{
#if BCAST_VECTORS
    constexpr int group = interleave * static_cast<int>(item_bytes<Operation>);
    if constexpr (multiplies_floats<Operation> && interleave == 1) {
        if (runs->length >= 5) {
            multiply_runs<Operation>(runs, dst);
            return;
        }
    }
    if constexpr (Operation::is_idempotent && group <= 16) {
        if (always_go_by_vectors<Operation, interleave> || runs->length * item_bytes<Operation> >= 4) {
            combine_runs_by_vectors<Operation, group>(runs, dst);
            return;
        }
    }
#endif
    if constexpr (!always_go_by_vectors<Operation, interleave>) combine_runs_by_items<Operation>(runs, dst);
}

template <class Operation, bool as_items>
BCAST_INLINE void combine_few_items(const bcast_term_runs *runs, const bcast_sink *dst)
{
    if (runs->length == 2) combine_dense_runs<Operation, 2, as_items>(dst->sum, dst->error, runs->src, runs->count);
    else if (runs->length == 3)
        combine_dense_runs<Operation, 3, as_items>(dst->sum, dst->error, runs->src, runs->count);
    else combine_dense_runs<Operation, 4, as_items>(dst->sum, dst->error, runs->src, runs->count);
}

/* Combine runs of 2 to 4 items. To add to accumulators, combine a block of runs in a buffer first. */
template <class Operation>
BCAST_INLINE void combine_short_runs(bcast_term_runs runs, bcast_sink dst)
{
    constexpr ptrdiff_t size = accumulator_bytes<Operation>, room = 2048 / size;
    const ptrdiff_t all = runs.count, at_once = dst.mode == BCAST_ADD && room < all ? room : all;
    char found[2 * room * size];

    for (ptrdiff_t first = 0; first < all; first += at_once) {
        const bcast_sink beside = {BCAST_SET, found, found + room * size};
        runs.count = all - first < at_once ? all - first : at_once;
        combine_few_items<Operation, false>(&runs, dst.mode == BCAST_ADD ? &beside : &dst);
        if (dst.mode == BCAST_ADD) combine_accumulators<Operation>(&dst, &beside, runs.count);
        runs.src += runs.count * runs.stride;
        dst = moved(dst, runs.count * size);
    }
}

template <class Operation>
BCAST_APART int combine_runs(const bcast_term_runs *all, const bcast_sink *dst)
{
    const bcast_term_runs runs = *all;
    const bool are_dense = runs.interleave == 1 && runs.stride == runs.length * item_bytes<Operation>;
    const bool are_few = 2 <= runs.length && runs.length <= 4, by_vectors = unrolled && goes_by_vectors<Operation>;
    const bool fill_lanes = by_vectors && runs.length == 4 && 4 * item_bytes<Operation> == 16;

    if (are_dense && are_few && !fill_lanes) {
        if (narrows<Operation>(dst->mode)) combine_few_items<Operation, true>(&runs, dst);
        else combine_short_runs<Operation>(runs, *dst);
    } else if (runs.interleave == 1) {
        combine_runs_with<Operation, 1>(&runs, dst);
    } else if (runs.interleave == 2) {
        combine_runs_with<Operation, 2>(&runs, dst);
    } else {
        combine_runs_with<Operation, 4>(&runs, dst);
    }
    return 0;
}
