/* The kernels of `positions.h`. `target.inc.h` includes this file for each target.

   Items become keys, integers of the same size. Keys have the order of the items, reversed for the least, so every
   search is for the greatest key. Each lane also keeps the position of its key, in an integer of the same size; parts
   are short enough for positions to fit. Runs of a block or more are read in blocks: each lane keeps its best item and
   the number of its block, and this block is searched again at the end. Loops over many columns are plain loops, which
   compilers vectorise. */

/* An integer. */
template <class T>
struct Sought {
    using Item = T;
    using Key = T;
    static constexpr bool greatest_is_known = false;

    template <class V> BCAST_INLINE V key_of(V x, T mask) { return x ^ mask; }
};

/* A bool: true if its byte is not 0. */
struct SoughtBool {
    using Item = uint8_t;
    using Key = uint8_t;
    static constexpr bool greatest_is_known = true;

    template <class V> BCAST_INLINE V key_of(V x, uint8_t mask)
    {
        const V no = V{}, yes = no + static_cast<uint8_t>(1);
        return (x != 0 ? yes : no) ^ mask;
    }
};

/* A float, given by its bits. Both zeros are equal, and NaN has the greatest key for both extremes. */
template <class Bits, Bits infinity>
struct SoughtFloat {
    using Item = Bits;      /* signed, so that keys are */
    using Key = Bits;
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
template <> struct SoughtOf<BCAST_FLOAT16> { using Type = SoughtFloat<int16_t, 0x7c00>; };
template <> struct SoughtOf<BCAST_BFLOAT16> { using Type = SoughtFloat<int16_t, 0x7f80>; };
template <> struct SoughtOf<BCAST_FLOAT32> { using Type = SoughtFloat<int32_t, 0x7f800000>; };
template <> struct SoughtOf<BCAST_FLOAT64> { using Type = SoughtFloat<int64_t, 0x7ff0000000000000>; };

template <class Items> using KeyOf = typename Items::Key;

template <class Items>
BCAST_INLINE KeyOf<Items> key_at(const char *at, KeyOf<Items> mask)
{
    return Items::key_of(read<typename Items::Item>(at), mask);
}

/* The bits by which keys are inverted: none, or all, which makes the least key the greatest. */
template <class Items>
BCAST_INLINE KeyOf<Items> mask_of(int greatest)
{
    return static_cast<KeyOf<Items>>(greatest ? 0 : ~static_cast<KeyOf<Items>>(0));
}

/* ---- Runs ---- */

constexpr ptrdiff_t runs_at_once = 256;

/* Contiguous runs of few items. */
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

/* Short runs, several at a time: their vectors are combined in pairs, as in `combine_runs.inc.h`. */
template <class Items> using ShortKeys = Vector<KeyOf<Items>, 16 / sizeof(KeyOf<Items>)>;

/* A key in each lane, and its position in the run. */
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

/* The lanes of a vector of items; `position` is that of the first item. */
template <class Items, class Keys>
BCAST_INLINE Lanes<Keys> lanes_at(const char *src, ptrdiff_t position, KeyOf<Items> mask)
{
    const Keys keys = Items::key_of(load<Keys>(src + position * static_cast<ptrdiff_t>(sizeof(KeyOf<Items>))), mask);
    return {keys, lane_numbers<Keys>() + static_cast<KeyOf<Items>>(position)};
}

/* Continue with the items from a position on, which is after the positions in all lanes. */
template <class Items, class Keys>
BCAST_INLINE void go_on(Lanes<Keys> *found, const char *src, ptrdiff_t position, KeyOf<Items> mask)
{
    const auto next = lanes_at<Items, Keys>(src, position, mask);
    const auto is_greater = next.keys > found->keys;
    found->positions = is_greater ? next.positions : found->positions;
    found->keys = is_greater ? next.keys : found->keys;
}

/* A run of 8 bytes or more. Some items may be in two lanes. */
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
            using Low = FromBoth<16 / count, false>;
            using High = FromBoth<16 / count, true>;
            pairs[i] = greater<Keys>(
                {in_order<Low>(a.keys, b.keys), in_order<Low>(a.positions, b.positions)},
                {in_order<High>(a.keys, b.keys), in_order<High>(a.positions, b.positions)});
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

/* ---- Runs that fill a block ---- */

constexpr ptrdiff_t block_bytes = 128;                  /* a block is searched again at the end */
constexpr ptrdiff_t chunk_bytes = 127 * block_bytes;    /* a chunk has blocks whose numbers fit the shortest keys */

/* How items are compared. Floats of 16 bits use the keys above. Others are compared as numbers, because NaN is searched
   for separately. Unsigned integers of 64 bits are compared as signed ones, for which more CPUs have instructions. */
template <bool greatest, int dtype>
struct SearchOf : ExtremeOf<greatest, dtype>::Type {
    static constexpr bool has_nan = false;      /* whether keys may be NaN */
};

template <class Items, bool greatest>
struct SearchByKeys : Extreme<typename Items::Key, true> {
    static constexpr bool has_nan = false;

    template <class V> BCAST_INLINE V of_item(V x)
    {
        return Items::key_of(x, static_cast<typename Items::Key>(greatest ? 0 : -1));
    }
};
template <bool greatest>
struct SearchOf<greatest, BCAST_FLOAT16> : SearchByKeys<SoughtOf<BCAST_FLOAT16>::Type, greatest> {};
template <bool greatest>
struct SearchOf<greatest, BCAST_BFLOAT16> : SearchByKeys<SoughtOf<BCAST_BFLOAT16>::Type, greatest> {};

template <class Float, bool greatest>
struct SearchOfFloats : Extreme<Float, greatest> {
    static constexpr bool has_nan = true;
};
template <bool greatest> struct SearchOf<greatest, BCAST_FLOAT32> : SearchOfFloats<float, greatest> {};
template <bool greatest> struct SearchOf<greatest, BCAST_FLOAT64> : SearchOfFloats<double, greatest> {};

template <bool greatest>
struct SearchOf<greatest, BCAST_UINT64> : Extreme<int64_t, greatest> {
    static constexpr bool has_nan = false;

    template <class V> BCAST_INLINE V of_item(V x) { return x ^ INT64_MIN; }
};

/* A register of keys, and a vector with a number for each of them. */
template <class Search>
using RegisterKeys = Vector<typename Search::Key, register_bytes / sizeof(typename Search::Key)>;
template <class Keys> using NumbersOf = decltype(Keys{} == Keys{});

/* The bytes of a register, rotated by `bytes` bytes. */
template <int bytes, class V>
BCAST_INLINE V turned(V x)
{
    typedef uint8_t Bytes __attribute__((vector_size(16)));
    constexpr int b = bytes;
#ifdef __clang__
#define BCAST_TURNED(...) __builtin_shufflevector((Bytes) x, (Bytes) x, __VA_ARGS__)
#else
#define BCAST_TURNED(...) __builtin_shuffle((Bytes) x, (Bytes) x, Bytes{__VA_ARGS__})
#endif
    return (V) BCAST_TURNED(
        b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7, b + 8, b + 9, b + 10, b + 11, b + 12, b + 13, b + 14,
        b + 15);
}

/* The lanes of a register, combined to one item by `Operation`. */
template <class Operation, int bytes, class V>
BCAST_INLINE auto one_of_lanes(V x)
{
    if constexpr (bytes == 16) return x[0];
    else return one_of_lanes<Operation, 2 * bytes>(Operation::both(x, turned<bytes>(x)));
}

template <class Operation, class V>
BCAST_INLINE auto one_of(V x)
{
    using Item = decltype(sum_of_lanes(V{}));
    static_assert(sizeof(V) <= 32, "longer registers have more than two halves of 16 bytes");
    if constexpr (sizeof(V) > 16) {
        using Half = Vector<Item, 16 / sizeof(Item)>;
        const Half low = half_of<Half>(x, 0), high = half_of<Half>(x, 1);
        return one_of_lanes<Operation, sizeof(Item)>(Operation::both(low, high));
    } else {
        return one_of_lanes<Operation, sizeof(Item)>(x);
    }
}

template <class Mask>
BCAST_INLINE uint64_t byte_bits(Mask mask)
{
    return bits_of_mask(bits_as<Vector<uint8_t, register_bytes>>(mask));
}

/* Tests for the items in a register: those with a key, NaN, or bools. */
template <class Search>
struct IsKey {
    BCAST_INLINE auto at(const char *src, typename Search::Key wanted)
    {
        using Keys = RegisterKeys<Search>;
        return keys_at<Search, Keys>(src) == Keys{} + wanted;
    }
};

template <class Search>
struct IsNan {
    BCAST_INLINE auto at(const char *src, typename Search::Key)
    {
        const auto keys = keys_at<Search, RegisterKeys<Search>>(src);
        return keys != keys;
    }
};

template <bool wanted>
struct IsTruth {
    using Bytes = Vector<uint8_t, register_bytes>;

    BCAST_INLINE auto of(Bytes bytes) { return wanted ? bytes != 0 : bytes == 0; }
    BCAST_INLINE auto at(const char *src, bool) { return of(load<Bytes>(src)); }
};

/* The number of the first byte of a block that passes a test; there is one. The half of the block is chosen without a
   branch, which would be mispredicted half the time. */
template <class Is, class Key>
BCAST_INLINE ptrdiff_t first_in_block(const char *src, Key wanted)
{
    constexpr int registers = 64 / register_bytes;
    uint64_t low = 0, high = 0;

    BCAST_UNROLL
    for (int i = 0; i < registers; i++) {
        low |= byte_bits(Is::at(src + i * register_bytes, wanted)) << (i * register_bytes % 64);
        high |= byte_bits(Is::at(src + 64 + i * register_bytes, wanted)) << (i * register_bytes % 64);
    }
    const uint64_t is_high = -static_cast<uint64_t>(low == 0);
    return __builtin_ctzll(low | (high & is_high)) + static_cast<ptrdiff_t>(is_high & 64);
}

/* The best keys of a block, one in each lane. */
template <class Search>
BCAST_INLINE RegisterKeys<Search> best_of_block(const char *src, NumbersOf<RegisterKeys<Search>> *nans)
{
    using Keys = RegisterKeys<Search>;
    constexpr int registers = block_bytes / register_bytes;
    Keys keys[registers];

    BCAST_UNROLL
    for (int i = 0; i < registers; i++) keys[i] = keys_at<Search, Keys>(src + i * register_bytes);
    if constexpr (Search::has_nan) {
        BCAST_UNROLL
        for (int i = 0; i < registers; i += 2) *nans |= are_unordered(keys[i], keys[i + 1]);
    }
    for (int n = registers / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) keys[i] = Search::both(keys[i], keys[i + n]);
    return keys[0];
}

/* The best key of a chunk, and the first block that has it. */
template <class Search>
struct Best {
    typename Search::Key key;
    const char *block;
    bool has_nan;       /* if so, the other fields are not used */
};

/* The last block of a chunk is moved back to end with it. */
template <class Search>
BCAST_INLINE Best<Search> best_of_chunk(const char *src, ptrdiff_t nbytes)
{
    using Keys = RegisterKeys<Search>;
    using Numbers = NumbersOf<Keys>;
    const ptrdiff_t last = nbytes - block_bytes;
    Numbers nans = {}, number = {}, numbers = {};
    Keys keys = best_of_block<Search>(src, &nans);

    for (ptrdiff_t at = block_bytes; at < nbytes; at += block_bytes) {
        const Keys next = Search::both(keys, best_of_block<Search>(src + (at < last ? at : last), &nans));
        number += 1;
        numbers = next == keys ? numbers : number;
        keys = next;
    }

    const auto key = one_of<Search>(keys);
    const Numbers none = Numbers{} + 127, candidates = keys == Keys{} + key ? numbers : none;
    const ptrdiff_t found = one_of<Extreme<int64_t, false>>(candidates) * block_bytes;
    return {key, src + (found < last ? found : last), Search::has_nan && byte_bits(nans) != 0};
}

/* The number of the first byte of the first NaN. There is one. */
template <class Search>
BCAST_APART ptrdiff_t first_nan(const char *src, ptrdiff_t nbytes)
{
    const ptrdiff_t last = nbytes - register_bytes;
    ptrdiff_t at = 0;
    uint64_t bits = 0;

    while ((bits = byte_bits(IsNan<Search>::at(src + at, {}))) == 0) {
        at += register_bytes;
        at = at < last ? at : last;
    }
    return at + __builtin_ctzll(bits);
}

/* The position in a run of a block or more. */
template <class Search>
BCAST_INLINE ptrdiff_t find_in_long_run(const char *src, ptrdiff_t nbytes)
{
    constexpr size_t size = sizeof(typename Search::Key);
    Best<Search> best = {};

    for (ptrdiff_t at = 0; at < nbytes; at += chunk_bytes) {
        const ptrdiff_t begin = nbytes - at < block_bytes ? nbytes - block_bytes : at;
        const ptrdiff_t rest = nbytes - begin;
        const auto next = best_of_chunk<Search>(src + begin, rest < chunk_bytes ? rest : chunk_bytes);
        if (next.has_nan) return begin / size + first_nan<Search>(src + begin, nbytes - begin) / size;
        if (at == 0 || Search::both(best.key, next.key) != best.key) best = next;
    }
    return static_cast<size_t>(best.block - src + first_in_block<IsKey<Search>>(best.block, best.key)) / size;
}

template <class Search>
BCAST_APART void find_in_long_runs(
    const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t nbytes, int64_t *positions)
{
    for (ptrdiff_t run = 0; run < count; run++) positions[run] = find_in_long_run<Search>(src + run * stride, nbytes);
}

/* Registers combined to one: a byte is nonzero if one has a true bool there, or 0 if one has a false bool, as wanted.
   Combining them in pairs shortens the dependency chain. */
template <bool wanted, int registers>
BCAST_INLINE auto truths_of(const char *src)
{
    using Bytes = typename IsTruth<wanted>::Bytes;
    if constexpr (registers == 1) {
        return load<Bytes>(src);
    } else {
        const Bytes a = truths_of<wanted, registers / 2>(src);
        const Bytes b = truths_of<wanted, registers / 2>(src + registers / 2 * register_bytes);
        if constexpr (wanted) return a | b;
        else return b < a ? b : a;
    }
}

/* Whether a bool in the registers is true, or false. */
template <bool wanted, int registers>
BCAST_INLINE bool has_truth(const char *src)
{
    return byte_bits(IsTruth<wanted>::of(truths_of<wanted, registers>(src))) != 0;
}

/* The position of the first bool that is true, or false; 0 if there is none. There is at least a register of bools. */
template <bool wanted>
BCAST_INLINE ptrdiff_t first_truth(const char *src, ptrdiff_t nbytes)
{
    constexpr int registers = block_bytes / register_bytes;
    const uint64_t first = byte_bits(IsTruth<wanted>::at(src, wanted));
    ptrdiff_t at = 0;

    if (first != 0) return __builtin_ctzll(first);      /* in half of all calls */
    if (nbytes >= 4 * block_bytes)      /* then read aligned registers, which do not cross lines */
        at = register_bytes - static_cast<ptrdiff_t>(reinterpret_cast<uintptr_t>(src) % register_bytes);
    while (at + 2 * block_bytes <= nbytes && !has_truth<wanted, 2 * registers>(src + at)) at += 2 * block_bytes;
    for (; at + block_bytes <= nbytes; at += block_bytes)
        if (has_truth<wanted, registers>(src + at)) return at + first_in_block<IsTruth<wanted>>(src + at, wanted);
    for (; at < nbytes; at += register_bytes) {
        at = at + register_bytes <= nbytes ? at : nbytes - register_bytes;
        const uint64_t bits = byte_bits(IsTruth<wanted>::at(src + at, wanted));
        if (bits != 0) return at + __builtin_ctzll(bits);
    }
    return 0;
}

template <bool wanted>
BCAST_APART void find_truths_in_runs(
    const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t nbytes, int64_t *positions)
{
    for (ptrdiff_t run = 0; run < count; run++) positions[run] = first_truth<wanted>(src + run * stride, nbytes);
}

#endif

/* ---- Runs of any length ---- */

template <class Items>
BCAST_INLINE ptrdiff_t find_one_by_one(const char *src, ptrdiff_t length, KeyOf<Items> mask)
{
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>);
    ptrdiff_t best = 0;
    auto greatest = key_at<Items>(src, mask);

    for (ptrdiff_t i = 1; i < length && !(Items::greatest_is_known && greatest == (mask == 0 ? 1 : 0xff)); i++) {
        const auto key = key_at<Items>(src + i * size, mask);
        best = key > greatest ? i : best;
        greatest = key > greatest ? key : greatest;
    }
    return best;
}

/* This is clearer whole: it has a line for each length of runs and kind of items. */
template <int dtype>
void find_in_runs(
    int greatest, const char *src, ptrdiff_t count, ptrdiff_t stride, ptrdiff_t length, int64_t *positions)
{
    using Items = typename SoughtOf<dtype>::Type;
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>);
    const ptrdiff_t nbytes = length * size;
    const KeyOf<Items> mask = mask_of<Items>(greatest);

    if (2 <= length && length <= 4 && stride == nbytes) {
        if (length == 2) find_in_dense_runs<Items, 2>(mask, src, count, positions);
        else if (length == 3) find_in_dense_runs<Items, 3>(mask, src, count, positions);
        else find_in_dense_runs<Items, 4>(mask, src, count, positions);
        return;
    }
#if BCAST_VECTORS
    if constexpr (Items::greatest_is_known) {
        if (nbytes >= register_bytes) {
            if (greatest) find_truths_in_runs<true>(src, count, stride, nbytes, positions);
            else find_truths_in_runs<false>(src, count, stride, nbytes, positions);
            return;
        }
    } else if (nbytes >= block_bytes) {
        if (greatest) find_in_long_runs<SearchOf<true, dtype>>(src, count, stride, nbytes, positions);
        else find_in_long_runs<SearchOf<false, dtype>>(src, count, stride, nbytes, positions);
        return;
    }
    if (nbytes >= 8) {
        find_in_short_runs<Items>(mask, src, count, stride, length, positions);
        return;
    }
#endif
    for (ptrdiff_t run = 0; run < count; run++)
        positions[run] = find_one_by_one<Items>(src + run * stride, length, mask);
}

/* ---- Columns ---- */

constexpr ptrdiff_t columns_at_once = 512;

/* Continue the search in columns with the rows from `begin` to `end`, whose numbers, counted from `begin`, fit a key.
   Pointers come one by one, so that compilers know that they do not overlap. */
template <class Items>
BCAST_INLINE void find_in_some_rows(
    KeyOf<Items> mask, const char *BCAST_RESTRICT src, ptrdiff_t width, ptrdiff_t stride, ptrdiff_t begin,
    ptrdiff_t end, KeyOf<Items> *BCAST_RESTRICT keys, KeyOf<Items> *BCAST_RESTRICT numbers)
{
    using Key = KeyOf<Items>;

    for (ptrdiff_t row = begin; row < end; row++) {
        const char *from = src + row * stride;
        const Key number = static_cast<Key>(row - begin + 1);       /* 0 means an earlier row */
        for (ptrdiff_t i = 0; i < width; i++) {
            const Key key = key_at<Items>(from + i * static_cast<ptrdiff_t>(sizeof(Key)), mask);
            numbers[i] = key > keys[i] ? number : numbers[i];
            keys[i] = key > keys[i] ? key : keys[i];
        }
    }
}

template <class Items>
BCAST_APART void find_in_many_columns(
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
            memset(numbers, 0, n * size);
            find_in_some_rows<Items>(mask, from, n, stride, begin, end, keys, numbers);
            for (ptrdiff_t i = 0; i < n; i++)
                if (numbers[i] != 0) positions[first + i] = begin + numbers[i] - 1;
        }
    }
}

/* Few columns, with contiguous rows: several rows are first joined into one. */
template <class Items>
BCAST_INLINE void find_in_few_columns(
    KeyOf<Items> mask, const char *src, ptrdiff_t width, ptrdiff_t length, int64_t *positions)
{
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>);
    const ptrdiff_t most = length * width / 32;     /* joined columns, which are compared one by one at the end */
    const ptrdiff_t joined = (most < columns_at_once ? most : columns_at_once) / width, whole = length / joined;
    int64_t found[columns_at_once];     /* for each joined column, the number of a joined row */

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

#if BCAST_VECTORS

/* ---- Narrow cells: keys stay in registers from row to row ---- */

/* The bytes of a row, 32 at a time or less at its end, as in the narrow rows of `combine_rows.inc.h`: two vectors, or
   two words of one vector. */
template <class Items, int word>
struct NarrowColumns {
    using Keys = ShortKeys<Items>;
    static constexpr int size = sizeof(KeyOf<Items>), vectors = word == 16 ? 2 : 1, lanes = 16 / size;
    static constexpr int of_part = word / size;                         /* columns of a vector, or of a word */
    static constexpr int from_part = (word == 16 ? 16 : 8) / size;      /* distance between these, in lanes */

    Keys keys[vectors];

    BCAST_INLINE NarrowColumns at(const char *src, ptrdiff_t nbytes, KeyOf<Items> mask)
    {
        if constexpr (word == 16)
            return {{Items::key_of(load<Keys>(src), mask), Items::key_of(load<Keys>(src + nbytes - 16), mask)}};
        else if constexpr (word == 8)
            return {{Items::key_of(bits_as<Keys>(words_at<uint64_t>(src, nbytes)), mask)}};
        else if constexpr (word == 4)
            return {{Items::key_of(bits_as<Keys>(words_at<uint32_t>(src, nbytes)), mask)}};
        else if constexpr (word == 2)
            return {{Items::key_of(bits_as<Keys>(words_at<uint16_t>(src, nbytes)), mask)}};
        else
            return {{Items::key_of(bits_as<Keys>(words_at<uint8_t>(src, nbytes)), mask)}};
    }

    /* The lane of a column. */
    BCAST_INLINE ptrdiff_t lane(ptrdiff_t column, ptrdiff_t width)
    {
        return column < of_part ? column : from_part + column - (width - of_part);
    }
};

template <class Items, int word>
BCAST_APART void find_in_narrow_columns(
    KeyOf<Items> mask, const bcast_cells *all, ptrdiff_t first, ptrdiff_t width, int64_t *positions)
{
    using Columns = NarrowColumns<Items, word>;
    using Key = KeyOf<Items>;
    using Keys = ShortKeys<Items>;
    constexpr ptrdiff_t size = sizeof(Key), most_rows = size == 1 ? 126 : 8192;
    const bcast_cells cells = *all;
    const ptrdiff_t nbytes = width * size;
    uint8_t lanes[32] = {0};
    Key found[Columns::vectors * Columns::lanes];

    for (ptrdiff_t i = 0; i < width; i++) lanes[i] = static_cast<uint8_t>(Columns::lane(i, width));
    for (ptrdiff_t cell = 0; cell < cells.count; cell++) {
        const char *src = cells.src + cell * cells.advance + first * size;
        int64_t *to = positions + cell * cells.width + first;
        Columns best = Columns::at(src, nbytes, mask);
        ptrdiff_t row = 1;

        do {
            const ptrdiff_t begin = row, end = cells.length - begin < most_rows ? cells.length : begin + most_rows;
            Keys number = {}, numbers[Columns::vectors] = {};

            for (; row < end; row++) {
                const Columns next = Columns::at(src + row * cells.stride, nbytes, mask);
                number += 1;
                BCAST_UNROLL
                for (int i = 0; i < Columns::vectors; i++) {
                    const auto is_greater = next.keys[i] > best.keys[i];
                    numbers[i] = is_greater ? number : numbers[i];
                    best.keys[i] = is_greater ? next.keys[i] : best.keys[i];
                }
            }
            memcpy(found, numbers, sizeof found);
            for (ptrdiff_t i = 0; i < width; i++) {
                const int64_t position = static_cast<int64_t>(found[lanes[i]]);     /* 0 means an earlier row */
                if (begin == 1) to[i] = position;
                else if (position != 0) to[i] = begin - 1 + position;
            }
        } while (row < cells.length);
    }
}

template <class Items>
BCAST_INLINE void find_in_narrow_cells(KeyOf<Items> mask, const bcast_cells *cells, int64_t *positions)
{
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>), most = 32 / size;

    for (ptrdiff_t first = 0, n; first < cells->width; first += n) {
        n = cells->width - first < most ? cells->width - first : most;
        if (n * size >= 16) find_in_narrow_columns<Items, 16>(mask, cells, first, n, positions);
        else if (n * size >= 8) find_in_narrow_columns<Items, 8>(mask, cells, first, n, positions);
        else if constexpr (size <= 4) {
            if (n * size >= 4) find_in_narrow_columns<Items, 4>(mask, cells, first, n, positions);
            else if constexpr (size <= 2) {
                if (n * size >= 2) find_in_narrow_columns<Items, 2>(mask, cells, first, n, positions);
                else if constexpr (size == 1) find_in_narrow_columns<Items, 1>(mask, cells, first, n, positions);
            }
        }
    }
}

#endif

template <class Items>
void find_in_columns(int greatest, const bcast_cells *all, int64_t *positions)
{
    constexpr ptrdiff_t size = sizeof(KeyOf<Items>);
    const bcast_cells cells = *all;
    const KeyOf<Items> mask = mask_of<Items>(greatest);
    const bool are_few = cells.width <= columns_at_once / 8 && cells.stride == cells.width * size
        && cells.length * cells.width >= SEARCHED_ITEMS;

#if BCAST_VECTORS
    if (!are_few && cells.width * size <= SEARCHED_NARROW_BYTES) {
        find_in_narrow_cells<Items>(mask, &cells, positions);
        return;
    }
#endif
    for (ptrdiff_t cell = 0; cell < cells.count; cell++) {
        const char *src = cells.src + cell * cells.advance;
        int64_t *to = positions + cell * cells.width;
        if (are_few) find_in_few_columns<Items>(mask, src, cells.width, cells.length, to);
        else find_in_many_columns<Items>(mask, src, cells.width, cells.stride, cells.length, to);
    }
}

/* Among positions in ascending order, the first one of the greatest or least item. */
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
