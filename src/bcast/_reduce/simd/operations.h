/* Idempotent operations, which may take a term twice: what each one compares, joins and writes, for each dtype.

   An operation is a struct:

       Item, Key, Accumulator      what lies in memory; what the loops compare; what they write
       of_item, of_accumulator     the key of either
       to_accumulator              the accumulator of a key
       both                        the key of two terms

   To add one, write its struct, a class beside `Extremes` and `Truths` that says which struct each dtype has, and its
   row in `idempotent.inc.h`. */

#ifndef BCAST_OPERATIONS_H
#define BCAST_OPERATIONS_H

#include "table.h"
#include "../../_runtime/target.h"

namespace bcast {

/* An integer. */
template <class T, bool greatest>
struct Extreme {
    using Item = T;
    using Key = T;
    using Accumulator = T;

    BCAST_INLINE T of_item(T x) { return x; }
    BCAST_INLINE T of_accumulator(T x) { return x; }
    BCAST_INLINE T to_accumulator(T x) { return x; }
    BCAST_INLINE T both(T a, T b) { return (greatest ? a > b : a < b) ? a : b; }
};

/* A float, by its bits, of which those of infinity are `infinity`. A key is an integer whose order is that of the
   floats, the other way round for the least; NaN is the greatest key. Compilers make vectors of this, as they do not
   where floats are compared one after the other. */
template <class Bits, class Integer, Bits infinity, bool greatest>
struct ExtremeOfFloats {
    using Item = Bits;
    using Key = Integer;
    using Accumulator = Bits;

    static constexpr Bits all_but_sign = static_cast<Bits>(-1) >> 1;

    BCAST_INLINE Key of_item(Bits bits)
    {
        const Bits size = bits & all_but_sign;
        const bool is_below = (size <= infinity) & ((size != bits) == greatest);
        return static_cast<Key>(is_below ? ~size : size);
    }
    BCAST_INLINE Key of_accumulator(Bits bits) { return of_item(bits); }
    BCAST_INLINE Bits to_accumulator(Key key)
    {
        const bool is_below = key < 0;
        const Bits size = static_cast<Bits>(is_below ? ~key : key);
        const bool is_negative = (size <= infinity) & (is_below == greatest);
        return static_cast<Bits>(is_negative ? size + all_but_sign + 1 : size);
    }
    BCAST_INLINE Key both(Key a, Key b) { return a > b ? a : b; }
};

/* Whether an item is zero, or is not. Floats are read as integers, without their sign where `mask` leaves that out. */
template <class T, T mask, bool zero>
struct Truth {
    using Item = T;
    using Key = T;
    using Accumulator = T;

    BCAST_INLINE Key of_item(Item x) { return static_cast<Key>(((x & mask) == 0) == zero ? -1 : 0); }
    BCAST_INLINE Key of_accumulator(Accumulator x) { return x; }
    BCAST_INLINE Accumulator to_accumulator(Key x) { return x; }
    BCAST_INLINE Key both(Key a, Key b) { return a | b; }
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
struct ExtremeOf<greatest, BCAST_FLOAT16> { using Type = ExtremeOfFloats<uint16_t, int16_t, 0x7c00, greatest>; };
template <bool greatest>
struct ExtremeOf<greatest, BCAST_BFLOAT16> { using Type = ExtremeOfFloats<uint16_t, int16_t, 0x7f80, greatest>; };
template <bool greatest>
struct ExtremeOf<greatest, BCAST_FLOAT32> { using Type = ExtremeOfFloats<uint32_t, int32_t, 0x7f800000, greatest>; };
template <bool greatest>
struct ExtremeOf<greatest, BCAST_FLOAT64> {
    using Type = ExtremeOfFloats<uint64_t, int64_t, 0x7ff0000000000000, greatest>;
};

template <bool greatest>
struct Extremes {
    template <int dtype> using Of = typename ExtremeOf<greatest, dtype>::Type;
};

#define BCAST_BITS_OF(NAME, Bits, is_float, ...)                                                                    \
    template <> struct BitsOf<BCAST_##NAME> {                                                                       \
        using Type = Bits;                                                                                          \
        static constexpr Bits without_sign = static_cast<Bits>(static_cast<Bits>(-1) >> is_float);                  \
    };
template <int dtype> struct BitsOf;
BCAST_DTYPES(BCAST_BITS_OF)

template <bool zero>
struct Truths {
    template <int dtype> using Of = Truth<typename BitsOf<dtype>::Type, BitsOf<dtype>::without_sign, zero>;
};

}

#endif
