/* The kernels of `positions.h`. `target.inc.h` includes this file for each target.

   Items become keys: integers as long as items, whose order is that of items, so that the greatest key is sought
   alone. Each lane also keeps the position of its key, in an integer as long as the key: parts are so short that it
   fits. All loops are plain, of which compilers make vectors, but for those of short runs. */

/* An integer. */
template <class T>
struct Sought {
    using Item = T;
    using Key = T;
    using Value = T;        /* as which items are compared with one that is sought; void if that goes by keys */
    static constexpr bool greatest_is_known = false;

    template <class V> BCAST_INLINE V key_of(V x, T mask) { return x ^ mask; }
};

/* A bool, of which any byte but 0 is true. */
struct SoughtBool {
    using Item = uint8_t;
    using Key = uint8_t;
    using Value = void;
    static constexpr bool greatest_is_known = true;

    template <class V> BCAST_INLINE V key_of(V x, uint8_t mask)
    {
        const V no = V{}, yes = no + static_cast<uint8_t>(1);
        return (x != 0 ? yes : no) ^ mask;
    }
};

/* A float, by its bits. Both zeros are equal, and NaN is the greatest, whatever is sought. */
template <class Bits, Bits infinity, class Float>
struct SoughtFloat {
    using Item = Bits;      /* signed, so that keys are */
    using Key = Bits;
    using Value = Float;
    static constexpr bool greatest_is_known = false;
    static constexpr Bits all_but_sign = static_cast<Bits>(~(static_cast<Bits>(1) << (8 * sizeof(Bits) - 1)));

    template <class V> BCAST_INLINE V key_of(V bits, Bits mask)
    {
        const V size = bits & all_but_sign, less = -size, nan = V{} + all_but_sign;
        const V value = bits < 0 ? less : size, turned = value ^ mask;
        return size > infinity ? nan : turned;
    }
};

template <int dtype> struct SoughtOf { using Type = Sought<typename ItemOf<dtype>::Type>; };
template <> struct SoughtOf<BCAST_BOOL> { using Type = SoughtBool; };
template <> struct SoughtOf<BCAST_FLOAT16> { using Type = SoughtFloat<int16_t, 0x7c00, void>; };
template <> struct SoughtOf<BCAST_BFLOAT16> { using Type = SoughtFloat<int16_t, 0x7f80, void>; };
template <> struct SoughtOf<BCAST_FLOAT32> { using Type = SoughtFloat<int32_t, 0x7f800000, float>; };
template <> struct SoughtOf<BCAST_FLOAT64> { using Type = SoughtFloat<int64_t, 0x7ff0000000000000, double>; };

template <class Items> using KeyOf = typename Items::Key;
template <class Value> constexpr bool goes_by_keys = false;
template <> constexpr bool goes_by_keys<void> = true;

template <class Items>
BCAST_INLINE KeyOf<Items> key_at(const char *at, KeyOf<Items> mask)
{
    return Items::key_of(read<typename Items::Item>(at), mask);
}

/* What keys are turned by: none, or all bits, which makes the least one the greatest. */
template <class Items>
BCAST_INLINE KeyOf<Items> mask_of(int greatest)
{
    return static_cast<KeyOf<Items>>(greatest ? 0 : ~static_cast<KeyOf<Items>>(0));
}

/* ---- Runs ---- */

constexpr ptrdiff_t runs_at_once = 256;
constexpr ptrdiff_t short_bytes = 512;      /* of a run that is read once; positions must fit its keys, too */
constexpr ptrdiff_t block_bytes = 2048;     /* of a long run, that are searched once more in the end */
constexpr ptrdiff_t large_block_bytes = 8 * block_bytes;    /* of one that is much longer */

/* Runs of few items, with nothing between them. */
template <class Items, int length>
BCAST_INLINE void find_in_dense_runs(
    KeyOf<Items> mask, const char *BCAST_RESTRICT src, ptrdiff_t count, int64_t *BCAST_RESTRICT positions)
{
    using Key = KeyOf<Items>;
    constexpr ptrdiff_t size = sizeof(Key);
    Key found[runs_at_once];

    for (ptrdiff_t first = 0; first < count; first += runs_at_once) {
        const ptrdiff_t n = count - first < runs_at_once ? count - first : runs_at_once;
        for (ptrdiff_t run = 0; run < n; run++) {
            const char *from = src + (first + run) * length * size;
            Key greatest = key_at<Items>(from, mask), position = 0;
            for (int i = 1; i < length; i++) {
                const Key key = key_at<Items>(from + i * size, mask);
                position = key > greatest ? static_cast<Key>(i) : position;
                greatest = key > greatest ? key : greatest;
            }
            found[run] = position;
        }
        for (ptrdiff_t run = 0; run < n; run++) positions[first + run] = found[run];
    }
}

#if BCAST_VECTORS

/* Short runs: several at a time, whose vectors become one by pairs, as in `combine.inc.h`. */
template <class Items> using ShortKeys = Vector<KeyOf<Items>, 16 / sizeof(KeyOf<Items>)>;

/* In each lane a key, and its position in the run. */
template <class Keys>
struct Lanes {
    Keys keys;
    Keys positions;
};

template <class Keys>
BCAST_INLINE Lanes<Keys> greater(Lanes<Keys> a, Lanes<Keys> b)
{
    const auto is_b = (b.keys > a.keys) | ((b.keys == a.keys) & (b.positions < a.positions));
    return {is_b ? b.keys : a.keys, is_b ? b.positions : a.positions};
}

/* The numbers of lanes. */
template <class Keys>
BCAST_INLINE Keys lane_numbers()
{
    using Key = decltype(sum_of_lanes(Keys{}));
    Keys numbers = {};
    for (unsigned i = 0; i < 16 / sizeof(Key); i++) numbers[i] = static_cast<Key>(i);
    return numbers;
}

/* The lanes of some items, of which the first one has a position. */
template <class Items, class Keys>
BCAST_INLINE Lanes<Keys> lanes_at(const char *src, ptrdiff_t position, KeyOf<Items> mask)
{
    const Keys keys = Items::key_of(load<Keys>(src + position * static_cast<ptrdiff_t>(sizeof(KeyOf<Items>))), mask);
    return {keys, lane_numbers<Keys>() + static_cast<KeyOf<Items>>(position)};
}

/* Go on with the items from a position on, which is behind those of all lanes. */
template <class Items, class Keys>
BCAST_INLINE void go_on(Lanes<Keys> *found, const char *src, ptrdiff_t position, KeyOf<Items> mask)
{
    const auto next = lanes_at<Items, Keys>(src, position, mask);
    const auto is_greater = next.keys > found->keys;
    found->positions = is_greater ? next.positions : found->positions;
    found->keys = is_greater ? next.keys : found->keys;
}

/* A run of 8 bytes or more: some items may be in two lanes. */
template <class Items>
BCAST_INLINE Lanes<ShortKeys<Items>> lanes_of_run(const char *src, ptrdiff_t length, KeyOf<Items> mask)
{
    using Keys = ShortKeys<Items>;
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>), lanes = 16 / size, half = 8 / size;
    ptrdiff_t at = 2 * lanes;

    if (length < lanes) {
        const Vector<uint64_t, 2> bytes = {read<uint64_t>(src), read<uint64_t>(src + (length - half) * size)};
        Keys positions = lane_numbers<Keys>();
        for (ptrdiff_t i = half; i < lanes; i++) positions[i] += static_cast<KeyOf<Items>>(length - lanes);
        return {Items::key_of(bits_as<Keys>(bytes), mask), positions};
    }
    auto first = lanes_at<Items, Keys>(src, 0, mask), second = lanes_at<Items, Keys>(src, length - lanes, mask);
    if (length > 2 * lanes) {
        second = lanes_at<Items, Keys>(src, lanes, mask);
        for (; at + 2 * lanes <= length; at += 2 * lanes) {
            go_on<Items>(&first, src, at, mask);
            go_on<Items>(&second, src, at + lanes, mask);
        }
        if (at + lanes < length) go_on<Items>(&first, src, at, mask);
        if (at < length) go_on<Items>(&second, src, length - lanes, mask);
    }
    return greater(first, second);
}

template <int count, class Keys>
BCAST_INLINE Lanes<Keys> folded_lanes(const Lanes<Keys> *all)
{
    if constexpr (count == 1) {
        return all[0];
    } else {
        Lanes<Keys> pairs[count / 2];
        for (int i = 0; i < count / 2; i++) {
            const auto a = all[2 * i], b = all[2 * i + 1];
            pairs[i] = greater<Keys>(
                {zipped<16 / count, false>(a.keys, b.keys), zipped<16 / count, false>(a.positions, b.positions)},
                {zipped<16 / count, true>(a.keys, b.keys), zipped<16 / count, true>(a.positions, b.positions)});
        }
        return folded_lanes<count / 2>(pairs);
    }
}

template <class Items>
BCAST_APART void find_in_short_runs(
    KeyOf<Items> mask, const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t length, int64_t *positions)
{
    constexpr int at_once = 16 / sizeof(KeyOf<Items>);
    Lanes<ShortKeys<Items>> lanes[at_once] = {};

    for (ptrdiff_t first = 0; first < count; first += at_once) {
        const int n = count - first < at_once ? static_cast<int>(count - first) : at_once;
        BCAST_NOT_UNROLLED
        for (int i = 0; i < n; i++, src += stride) lanes[i] = lanes_of_run<Items>(src, length, mask);
        const auto found = folded_lanes<at_once>(lanes);
        for (int i = 0; i < n; i++) positions[first + i] = static_cast<int64_t>(found.positions[i]);
    }
}

#endif

/* Whether one of 64 bytes' items has a key. */
template <class Items>
BCAST_INLINE bool has_key(const char *src, KeyOf<Items> wanted, KeyOf<Items> mask)
{
#if BCAST_VECTORS
    using Keys = ShortKeys<Items>;
    const Keys all = Keys{} + wanted;
    const auto found = (Items::key_of(load_at<Keys>(src, 0), mask) == all)
        | (Items::key_of(load_at<Keys>(src, 1), mask) == all) | (Items::key_of(load_at<Keys>(src, 2), mask) == all)
        | (Items::key_of(load_at<Keys>(src, 3), mask) == all);
    const auto bits = bits_as<Vector<uint64_t, 2>>(found);
    return (bits[0] | bits[1]) != 0;
#else
    constexpr int size = sizeof(KeyOf<Items>);
    bool found = false;
    for (int i = 0; i < 64 / size; i++) found |= key_at<Items>(src + i * size, mask) == wanted;
    return found;
#endif
}

/* The first item of some that has a key, or if none has it, their number. */
template <class Items>
BCAST_INLINE ptrdiff_t first_with_key(const char *src, ptrdiff_t length, KeyOf<Items> wanted, KeyOf<Items> mask)
{
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>), step = 64 / size;
    ptrdiff_t at = 0;
    while (at + step <= length && !has_key<Items>(src + at * size, wanted, mask)) at += step;
    while (at < length && key_at<Items>(src + at * size, mask) != wanted) at++;
    return at;
}

#if BCAST_VECTORS
template <class Value> using ShortValues = Vector<Value, 16 / sizeof(Value)>;

template <class V>
BCAST_INLINE bool is_any_set(V lanes)
{
    const auto bits = bits_as<Vector<uint64_t, 2>>(lanes);
    return (bits[0] | bits[1]) != 0;
}

/* In each lane, whether an item is equal to one, or NaN. */
template <class Value>
BCAST_INLINE auto are_equal(const char *src, int i, ShortValues<Value> wanted)
{
    const auto values = load_at<ShortValues<Value>>(src, i);
    return (values == wanted) | (values != values);
}
#endif

/* The first item of some that is equal to one of them. If that is NaN, any NaN is; otherwise there must be none. */
template <class Value>
BCAST_INLINE ptrdiff_t first_equal(const char *src, ptrdiff_t length, Value wanted)
{
    constexpr ptrdiff_t size = sizeof(Value);
    ptrdiff_t at = 0;
#if BCAST_VECTORS
    constexpr ptrdiff_t lanes = 16 / size, step = 8 * lanes;
    const ShortValues<Value> all = ShortValues<Value>{} + wanted;

    for (; at + step <= length; at += step) {
        auto found = are_equal<Value>(src + at * size, 0, all);
        BCAST_UNROLL
        for (int i = 1; i < 8; i++) found |= are_equal<Value>(src + at * size, i, all);
        if (is_any_set(found)) break;
    }
    while (at + lanes <= length && !is_any_set(are_equal<Value>(src + at * size, 0, all))) at += lanes;
#endif
    for (; at < length; at++) {
        const Value value = read<Value>(src + at * size);
        if (value == wanted || value != value) break;
    }
    return at;
}

/* The first bool of some that is true, or false; or if there is none, their number. */
BCAST_INLINE ptrdiff_t first_truth(const char *src, ptrdiff_t length, bool wanted)
{
    ptrdiff_t at = 0;
#if BCAST_VECTORS
    using Bytes = ShortValues<uint8_t>;
    const auto are_wanted = [wanted](const char *from) BCAST_LAMBDA_INLINE {
        const Bytes bytes = load<Bytes>(from);
        return wanted ? bits_as<Bytes>(bytes != 0) : bits_as<Bytes>(bytes == 0);
    };

    for (; at + 128 <= length; at += 128) {
        Bytes found = are_wanted(src + at);
        BCAST_UNROLL
        for (int i = 1; i < 8; i++) found |= are_wanted(src + at + 16 * i);
        if (is_any_set(found)) break;
    }
    while (at + 16 <= length && !is_any_set(are_wanted(src + at))) at += 16;
#endif
    while (at < length && (src[at] != 0) != wanted) at++;
    return at;
}

/* The greatest or least item of at least 64 bytes of them, which is one of several equal ones. */
template <class Items, class Operation>
BCAST_INLINE typename Items::Item extreme_of(const char *src, ptrdiff_t length)
{
    typename Operation::Accumulator extreme;
#if BCAST_VECTORS
    const ptrdiff_t nbytes = length * item_bytes<Operation>;
    if (nbytes >= long_bytes) {
        const auto keys = keys_of_long_run<Operation, true>(src, nbytes);
        auto key = keys[0];
        for (int i = 1; i < 16 / item_bytes<Operation>; i++) key = Operation::both(key, keys[i]);
        extreme = Operation::to_accumulator(key);
        return read<typename Items::Item>(reinterpret_cast<const char *>(&extreme));
    }
#endif
    bcast_term_runs run = {};
    bcast_sink sink = {};

    run.src = src;
    run.count = 1;
    run.length = length;
    run.interleave = 1;
    sink.sum = reinterpret_cast<char *>(&extreme);
    combine_runs<Operation>(&run, &sink);
    return read<typename Items::Item>(sink.sum);
}

/* The position in a run of any length: of the first block that has the greatest item, and in it. */
template <class Items, class Operation>
BCAST_APART ptrdiff_t find_in_run(const char *src, ptrdiff_t length, KeyOf<Items> mask)
{
    using Key = KeyOf<Items>;
    constexpr ptrdiff_t size = sizeof(Key);
    const ptrdiff_t block = (length * size < 8 * large_block_bytes ? block_bytes : large_block_bytes) / size;
    ptrdiff_t best = 0, best_length = 0;
    typename Items::Item extreme = {};
    Key greatest = 0;

    if constexpr (Items::greatest_is_known) {
        best = first_truth(src, length, mask == 0);
        return best < length ? best : 0;
    }
    for (ptrdiff_t at = 0, n; at < length; at += n) {
        n = length - at < block + block / 2 ? length - at : block;
        const auto item = extreme_of<Items, Operation>(src + at * size, n);
        const Key key = Items::key_of(item, mask);
        if (best_length == 0 || key > greatest) {
            extreme = item;
            greatest = key;
            best = at;
            best_length = n;
        }
    }
    if constexpr (goes_by_keys<typename Items::Value>)
        return best + first_with_key<Items>(src + best * size, best_length, greatest, mask);
    else
        return best + first_equal(src + best * size, best_length, read<typename Items::Value>(
            reinterpret_cast<const char *>(&extreme)));
}

template <int dtype>
void find_in_runs(
    int greatest, const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t length, int64_t *positions)
{
    using Items = typename SoughtOf<dtype>::Type;
    using Greatest = typename Extremes<true>::template Of<dtype>;
    using Least = typename Extremes<false>::template Of<dtype>;
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>);
    const KeyOf<Items> mask = mask_of<Items>(greatest);

    if (2 <= length && length <= 4 && stride == length * size) {
        if (length == 2) find_in_dense_runs<Items, 2>(mask, src, count, positions);
        else if (length == 3) find_in_dense_runs<Items, 3>(mask, src, count, positions);
        else find_in_dense_runs<Items, 4>(mask, src, count, positions);
        return;
    }
#if BCAST_VECTORS
    const bool fits_keys = size > 1 || length <= 127;
    if (8 <= length * size && length * size <= short_bytes && fits_keys) {
        find_in_short_runs<Items>(mask, src, count, stride, length, positions);
        return;
    }
#endif
    for (ptrdiff_t run = 0; run < count; run++) {
        const char *from = src + run * stride;
        positions[run] = greatest ? find_in_run<Items, Greatest>(from, length, mask)
            : find_in_run<Items, Least>(from, length, mask);
    }
}

/* ---- Columns ---- */

constexpr ptrdiff_t columns_at_once = 512;

/* Go on with some columns: with rows from `begin` to `end`, whose numbers, counted from `begin`, fit a key. */
template <class Items>
BCAST_INLINE void find_in_some_rows(
    KeyOf<Items> mask, const char *BCAST_RESTRICT src, ptrdiff_t width, ptrdiff_t stride, ptrdiff_t begin,
    ptrdiff_t end, KeyOf<Items> *BCAST_RESTRICT keys, KeyOf<Items> *BCAST_RESTRICT numbers)
{
    using Key = KeyOf<Items>;

    for (ptrdiff_t row = begin; row < end; row++) {
        const char *from = src + row * stride;
        const Key number = static_cast<Key>(row - begin + 1);       /* 0 of what was found before */
        for (ptrdiff_t i = 0; i < width; i++) {
            const Key key = key_at<Items>(from + i * static_cast<ptrdiff_t>(sizeof(Key)), mask);
            numbers[i] = key > keys[i] ? number : numbers[i];
            keys[i] = key > keys[i] ? key : keys[i];
        }
    }
}

template <class Items>
BCAST_INLINE void find_in_many_columns(
    KeyOf<Items> mask, const char *src, ptrdiff_t width, ptrdiff_t stride, ptrdiff_t length, int64_t *positions)
{
    using Key = KeyOf<Items>;
    constexpr ptrdiff_t size = sizeof(Key), most_rows = size == 1 ? 126 : 8192;
    Key keys[columns_at_once], numbers[columns_at_once];

    for (ptrdiff_t first = 0; first < width; first += columns_at_once) {
        const ptrdiff_t n = width - first < columns_at_once ? width - first : columns_at_once;
        const char *from = src + first * size;
        for (ptrdiff_t i = 0; i < n; i++) {
            keys[i] = key_at<Items>(from + i * size, mask);
            positions[first + i] = 0;
        }
        for (ptrdiff_t begin = 1, end; begin < length; begin = end) {
            end = length - begin < most_rows ? length : begin + most_rows;
            memset(numbers, 0, sizeof numbers);
            find_in_some_rows<Items>(mask, from, n, stride, begin, end, keys, numbers);
            for (ptrdiff_t i = 0; i < n; i++)
                if (numbers[i] != 0) positions[first + i] = begin + numbers[i] - 1;
        }
    }
}

/* Few columns, with nothing between the rows: several rows are one at first. */
template <class Items>
BCAST_INLINE void find_in_few_columns(
    KeyOf<Items> mask, const char *src, ptrdiff_t width, ptrdiff_t length, int64_t *positions)
{
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>);
    const ptrdiff_t joined = columns_at_once / width, whole = length / joined;
    int64_t found[columns_at_once];     /* of each column of joined rows, the number of these */

    find_in_many_columns<Items>(mask, src, joined * width, joined * width * size, whole, found);
    for (ptrdiff_t column = 0; column < width; column++) {
        ptrdiff_t best = found[column] * joined;
        auto greatest = key_at<Items>(src + (best * width + column) * size, mask);
        for (ptrdiff_t i = 1; i < joined; i++) {
            const ptrdiff_t row = found[i * width + column] * joined + i;
            const auto key = key_at<Items>(src + (row * width + column) * size, mask);
            if (key > greatest || (key == greatest && row < best)) {
                greatest = key;
                best = row;
            }
        }
        for (ptrdiff_t row = whole * joined; row < length; row++) {
            const auto key = key_at<Items>(src + (row * width + column) * size, mask);
            if (key > greatest) {
                greatest = key;
                best = row;
            }
        }
        positions[column] = best;
    }
}

template <class Items>
void find_in_columns(
    int greatest, const char *src, ptrdiff_t width, ptrdiff_t stride, ptrdiff_t length, int64_t *positions)
{
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>);
    const KeyOf<Items> mask = mask_of<Items>(greatest);
    const bool are_few = width <= columns_at_once / 8 && stride == width * size;

    if (are_few && length * width >= 4 * columns_at_once)
        find_in_few_columns<Items>(mask, src, width, length, positions);
    else
        find_in_many_columns<Items>(mask, src, width, stride, length, positions);
}

/* Of positions in ascending order, the first one of the greatest or least item. */
template <class Items>
int64_t best_of(int greatest, const char *src, ptrdiff_t stride, const int64_t *positions, ptrdiff_t count)
{
    const KeyOf<Items> mask = mask_of<Items>(greatest);
    int64_t best = positions[0];
    auto found = key_at<Items>(src + best * stride, mask);

    for (ptrdiff_t i = 1; i < count; i++) {
        const auto key = key_at<Items>(src + positions[i] * stride, mask);
        if (key > found) {
            found = key;
            best = positions[i];
        }
    }
    return best;
}

template <int dtype>
constexpr bcast_position_kernels position_kernels_of()
{
    using Items = typename SoughtOf<dtype>::Type;
    bcast_position_kernels kernels = {};
    kernels.in_runs = find_in_runs<dtype>;
    kernels.in_columns = find_in_columns<Items>;
    kernels.best_of = best_of<Items>;
    return kernels;
}

constexpr bcast_position_kernels position_kernels[] = {BCAST_DTYPES(BCAST_POSITION_KERNELS)};
