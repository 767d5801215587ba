/* The operations of `combine.h`: the types that each one reads, combines and writes, for each dtype.

   An operation is a struct:

       Item, Key, Accumulator      the type of items in memory; of keys, which are combined; of accumulators
       Keys, is_pair               the type for a term, or for a vector of terms: a key or, in a pair, two keys
       is_idempotent               whether a term may be combined twice; then all three types have one size
       is_truth                    for an idempotent operation, whether a single key can decide on the result
       writes_items                whether results have the size of items; otherwise they are accumulators
       of_item, of_accumulator     the key of an item, and of an accumulator
       to_accumulator              the accumulator of a key
       both                        the key of two terms together

   A pair has First and Second, which are operations themselves, and of_accumulators for the keys of both.

   The functions accept numbers; those of an idempotent operation also accept vectors of the compiler, whose comparisons
   are masks. `target.inc.h` includes this file for each target, because the functions use its instructions. To add an
   operation, write its struct, a class beside `Extremes` that maps dtypes to structs, and its row in `combine.h`. */

/* The keys of two operations for the same terms. */
template <class V>
struct PairOf {
    V first;
    V second;
};

/* The common part of operations whose keys and accumulators have the type of items. */
template <class T>
struct SameWidth {
    using Item = T;
    using Key = T;
    using Accumulator = T;
    template <class V> using Keys = V;
    static constexpr bool is_pair = false;
    static constexpr bool is_idempotent = false;
    static constexpr bool writes_items = true;
    static constexpr bool is_truth = false;
};

/* The same for idempotent operations. */
template <class T, bool truth>
struct Idempotent : SameWidth<T> {
    static constexpr bool is_idempotent = true;
    static constexpr bool is_truth = truth;
};

/* An integer. */
template <class T, bool greatest>
struct Extreme : Idempotent<T, false> {
    template <class V> BCAST_INLINE V of_item(V x) { return x; }
    template <class V> BCAST_INLINE V of_accumulator(V x) { return x; }
    template <class V> BCAST_INLINE V to_accumulator(V x) { return x; }
    template <class V> BCAST_INLINE V both(V a, V b)
    {
        if constexpr (greatest) return a > b ? a : b;
        else return a < b ? a : b;
    }
};

/* A bool, as a byte: any byte except 0 is true, and results are 0 or 1. */
template <bool greatest>
struct ExtremeOfBools : Extreme<uint8_t, greatest> {
    template <class V> BCAST_INLINE V to_accumulator(V x)
    {
        const V one = V{} + static_cast<uint8_t>(1);
        return x < one ? x : one;
    }
};

/* A float of 32 or 64 bits. Of two NaNs, or of two zeros of different signs, the result is one or the other. */
template <class T, bool greatest>
struct ExtremeOfFloats : Extreme<T, greatest> {
    template <class V> BCAST_INLINE V both(V a, V b)
    {
        const V chosen = Extreme<T, greatest>::both(a, b);     /* b, if one is NaN */
        return a == a ? chosen : a;
    }
};

/* The same among numbers: of a number and a NaN, the result is the number. */
template <class T, bool greatest>
struct ExtremeOfNumbers : Extreme<T, greatest> {
    template <class V> BCAST_INLINE V both(V a, V b)
    {
        const V chosen = Extreme<T, greatest>::both(a, b);     /* b, if one is NaN */
        return b == b ? chosen : a;
    }
};

/* A float of 16 bits, given by its bits; `infinity` has the bits of infinity. Keys are integers in the order of the
   floats, or in the reverse order for the least; NaN is the greatest key. */
template <int16_t infinity, bool greatest>
struct ExtremeOfHalves : Idempotent<int16_t, false> {
    static constexpr int16_t all_but_sign = 0x7fff;

    template <class V> BCAST_INLINE V of_item(V bits)
    {
        const V size = bits & all_but_sign;
        if constexpr (greatest) return ((size <= infinity) & (bits < 0)) ? ~size : size;
        else return ((size <= infinity) & (bits >= 0)) ? ~size : size;
    }
    template <class V> BCAST_INLINE V of_accumulator(V bits) { return of_item(bits); }
    template <class V> BCAST_INLINE V to_accumulator(V key)
    {
        const V size = key < 0 ? ~key : key, negative = ~(all_but_sign - size);     /* the bits with the sign set */
        if constexpr (greatest) return key < 0 ? negative : size;
        else return ((size <= infinity) & (key >= 0)) ? negative : size;
    }
    template <class V> BCAST_INLINE V both(V a, V b) { return a > b ? a : b; }
};

/* The same among numbers: NaN is the least key. */
template <int16_t infinity, bool greatest>
struct ExtremeOfHalfNumbers : ExtremeOfHalves<infinity, greatest> {
    static constexpr int16_t no_number = -0x8000;

    template <class V> BCAST_INLINE V of_item(V bits)
    {
        const V key = ExtremeOfHalves<infinity, greatest>::of_item(bits), none = key - key + no_number;
        return key > infinity ? none : key;
    }
    template <class V> BCAST_INLINE V of_accumulator(V bits) { return of_item(bits); }
};

/* Whether all items are nonzero, or whether any is: 1 or 0, in an accumulator of the size of an item. A key has all
   bits set if an item decides on the result. Floats are read as integers; their `mask` removes the sign. */
template <class T, T mask, bool zero>
struct Truth : Idempotent<T, true> {
    template <class V> BCAST_INLINE V of_item(V x)
    {
        const V no = V{}, yes = ~no;
        if constexpr (zero) return (x & mask) == 0 ? yes : no;
        else return (x & mask) == 0 ? no : yes;
    }
    template <class V> BCAST_INLINE V of_accumulator(V x)
    {
        if constexpr (zero) return x - static_cast<T>(1);
        else return V{} - x;
    }
    template <class V> BCAST_INLINE V to_accumulator(V key)
    {
        const V is_set = key & static_cast<T>(1);
        if constexpr (zero) return is_set ^ static_cast<T>(1);
        else return is_set;
    }
    template <class V> BCAST_INLINE V both(V a, V b) { return a | b; }
};

/* The least and the greatest item, in one pass over the terms. */
template <class Least, class Greatest>
struct Pair : Idempotent<typename Least::Item, false> {
    using First = Least;
    using Second = Greatest;
    template <class V> using Keys = PairOf<V>;
    static constexpr bool is_pair = true;

    template <class V> BCAST_INLINE PairOf<V> of_item(V x) { return {First::of_item(x), Second::of_item(x)}; }
    template <class V> BCAST_INLINE PairOf<V> of_accumulators(V a, V b)
    {
        return {First::of_accumulator(a), Second::of_accumulator(b)};
    }
    template <class V> BCAST_INLINE PairOf<V> both(PairOf<V> a, PairOf<V> b)
    {
        return {First::both(a.first, b.first), Second::both(a.second, b.second)};
    }
};

/* The same for floats of 32 or 64 bits. If one part is NaN, both are, so one comparison serves both. */
template <class T>
struct PairOfFloats : Pair<Extreme<T, false>, Extreme<T, true>> {
    template <class V> BCAST_INLINE PairOf<V> both(PairOf<V> a, PairOf<V> b)
    {
        const auto is_number = a.first == a.first;
        const PairOf<V> chosen = Pair<Extreme<T, false>, Extreme<T, true>>::both(a, b);
        return {is_number ? chosen.first : a.first, is_number ? chosen.second : a.second};
    }
};

/* A product, in 64 bits. */
template <class T, class Wide>
struct Product {
    using Item = T;
    using Key = Wide;
    using Accumulator = Wide;
    template <class V> using Keys = V;
    static constexpr bool is_pair = false;
    static constexpr bool is_idempotent = false;
    static constexpr bool writes_items = sizeof(T) < sizeof(Wide) && static_cast<T>(0.5) != 0;    /* float results */

    BCAST_INLINE Wide of_item(T x) { return static_cast<Wide>(x); }
    BCAST_INLINE Wide of_accumulator(Wide x) { return x; }
    BCAST_INLINE Wide to_accumulator(Wide x) { return x; }
    BCAST_INLINE Wide both(Wide a, Wide b) { return a * b; }
};

/* The same for bools, whose product is 0 or 1: any byte except 0 is true. */
struct ProductOfBools : Product<uint8_t, uint64_t> {
    BCAST_INLINE uint64_t of_item(uint8_t x) { return x != 0; }
    BCAST_INLINE uint64_t both(uint64_t a, uint64_t b) { return a & b; }
};

/* The types of items, by the numbers of dtypes. */
template <int dtype> struct ItemOf;
template <> struct ItemOf<BCAST_BOOL> { using Type = uint8_t; };
template <> struct ItemOf<BCAST_INT8> { using Type = int8_t; };
template <> struct ItemOf<BCAST_INT16> { using Type = int16_t; };
template <> struct ItemOf<BCAST_INT32> { using Type = int32_t; };
template <> struct ItemOf<BCAST_INT64> { using Type = int64_t; };
template <> struct ItemOf<BCAST_UINT8> { using Type = uint8_t; };
template <> struct ItemOf<BCAST_UINT16> { using Type = uint16_t; };
template <> struct ItemOf<BCAST_UINT32> { using Type = uint32_t; };
template <> struct ItemOf<BCAST_UINT64> { using Type = uint64_t; };

/* The operations for each dtype. */
template <bool greatest, int dtype>
struct ExtremeOf { using Type = Extreme<typename ItemOf<dtype>::Type, greatest>; };
template <bool greatest>
struct ExtremeOf<greatest, BCAST_FLOAT16> { using Type = ExtremeOfHalves<0x7c00, greatest>; };
template <bool greatest>
struct ExtremeOf<greatest, BCAST_BFLOAT16> { using Type = ExtremeOfHalves<0x7f80, greatest>; };
template <bool greatest>
struct ExtremeOf<greatest, BCAST_FLOAT32> { using Type = ExtremeOfFloats<float, greatest>; };
template <bool greatest>
struct ExtremeOf<greatest, BCAST_FLOAT64> { using Type = ExtremeOfFloats<double, greatest>; };

template <bool greatest>
struct Extremes {
    template <int dtype> using Of = typename ExtremeOf<greatest, dtype>::Type;
};

template <int dtype>
struct PairOfExtremes {
    using Type = Pair<typename ExtremeOf<false, dtype>::Type, typename ExtremeOf<true, dtype>::Type>;
};
template <> struct PairOfExtremes<BCAST_BOOL> { using Type = Pair<ExtremeOfBools<false>, ExtremeOfBools<true>>; };
template <> struct PairOfExtremes<BCAST_FLOAT32> { using Type = PairOfFloats<float>; };
template <> struct PairOfExtremes<BCAST_FLOAT64> { using Type = PairOfFloats<double>; };

struct Pairs {
    template <int dtype> using Of = typename PairOfExtremes<dtype>::Type;
};

template <bool greatest, int dtype>
struct ExtremeOfNumbersOf { using Type = typename ExtremeOf<greatest, dtype>::Type; };
template <bool greatest>
struct ExtremeOfNumbersOf<greatest, BCAST_FLOAT16> { using Type = ExtremeOfHalfNumbers<0x7c00, greatest>; };
template <bool greatest>
struct ExtremeOfNumbersOf<greatest, BCAST_BFLOAT16> { using Type = ExtremeOfHalfNumbers<0x7f80, greatest>; };
template <bool greatest>
struct ExtremeOfNumbersOf<greatest, BCAST_FLOAT32> { using Type = ExtremeOfNumbers<float, greatest>; };
template <bool greatest>
struct ExtremeOfNumbersOf<greatest, BCAST_FLOAT64> { using Type = ExtremeOfNumbers<double, greatest>; };

template <bool greatest>
struct ExtremesOfNumbers {
    template <int dtype> using Of = typename ExtremeOfNumbersOf<greatest, dtype>::Type;
};

template <int dtype> struct BitsOf;
BCAST_DTYPES(BCAST_BITS_OF)

template <bool zero>
struct Truths {
    template <int dtype> using Of = Truth<typename BitsOf<dtype>::Type, BitsOf<dtype>::without_sign, zero>;
};

/* Integers wrap around in 64 bits; terms of other dtypes are first packed as float64. */
template <int dtype> struct ProductOf { using Type = Product<uint64_t, uint64_t>; };
template <> struct ProductOf<BCAST_BOOL> { using Type = ProductOfBools; };
template <> struct ProductOf<BCAST_INT8> { using Type = Product<int8_t, uint64_t>; };
template <> struct ProductOf<BCAST_INT16> { using Type = Product<int16_t, uint64_t>; };
template <> struct ProductOf<BCAST_INT32> { using Type = Product<int32_t, uint64_t>; };
template <> struct ProductOf<BCAST_UINT8> { using Type = Product<uint8_t, uint64_t>; };
template <> struct ProductOf<BCAST_UINT16> { using Type = Product<uint16_t, uint64_t>; };
template <> struct ProductOf<BCAST_UINT32> { using Type = Product<uint32_t, uint64_t>; };
template <> struct ProductOf<BCAST_FLOAT32> { using Type = Product<float, double>; };
template <> struct ProductOf<BCAST_FLOAT64> { using Type = Product<double, double>; };

struct Products {
    template <int dtype> using Of = typename ProductOf<dtype>::Type;
};
