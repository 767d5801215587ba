/* Kinds of numbers: the type of an item, how to read its value, and the range of integers. */

#ifndef BCAST_NUMBERS_H
#define BCAST_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"

namespace bcast {
namespace {

/* The order matters: it is the order of `kind_of_type`. The kind for all other dtypes comes last. */
enum Kind : int {
    boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64, complex64, complex128, float16,
    bfloat16, other
};

constexpr int kind_count = other + 1;

constexpr bool is_integer(Kind kind) { return kind >= int8 && kind <= uint64; }
constexpr bool is_complex(Kind kind) { return kind == complex64 || kind == complex128; }
constexpr bool is_half(Kind kind) { return kind == float16 || kind == bfloat16; }
constexpr bool is_real_float(Kind kind) { return kind == float32 || kind == float64 || is_half(kind); }

/* The kind for NumPy's number of a dtype; ml_dtypes' number of bfloat16 is given. */
constexpr Kind kind_of_type(int type, int type_of_bfloat16)
{
    constexpr int numpys_float16 = 23, numpys_types = 17;
    constexpr Kind of_long = sizeof(long) == 8 ? int64 : int32;
    constexpr Kind of_unsigned_long = sizeof(long) == 8 ? uint64 : uint32;
    constexpr Kind kinds[numpys_types] = {
        boolean, int8, uint8, int16, uint16, int32, uint32, of_long, of_unsigned_long, int64, uint64, float32, float64,
        other, complex64, complex128, other,
    };

    if (type == numpys_float16) return float16;
    if (type == type_of_bfloat16) return bfloat16;
    return type >= 0 && type < numpys_types ? kinds[type] : other;
}

/* An item whose value is itself. */
template <class T>
struct Plain {
    using Item = T;

    BCAST_INLINE T value(T item) { return item; }
};

template <Kind kind> struct Number;
template <> struct Number<int8> : Plain<int8_t> {};
template <> struct Number<uint8> : Plain<uint8_t> {};
template <> struct Number<int16> : Plain<int16_t> {};
template <> struct Number<uint16> : Plain<uint16_t> {};
template <> struct Number<int32> : Plain<int32_t> {};
template <> struct Number<uint32> : Plain<uint32_t> {};
template <> struct Number<int64> : Plain<int64_t> {};
template <> struct Number<uint64> : Plain<uint64_t> {};
template <> struct Number<float32> : Plain<float> {};
template <> struct Number<float64> : Plain<double> {};

/* A bool is true if its byte is not 0: masks of other programs may have 255. */
template <>
struct Number<boolean> {
    using Item = uint8_t;

    BCAST_INLINE int value(Item byte) { return byte != 0; }
};

template <>
struct Number<float16> {
    using Item = uint16_t;

    BCAST_INLINE float value(Item bits) { return bcast_f16_of(bits); }
};

template <>
struct Number<bfloat16> {
    using Item = uint16_t;

    BCAST_INLINE float value(Item bits) { return bcast_bf16_of(bits); }
};

template <Kind kind> using ItemOf = typename Number<kind>::Item;

/* The bounds of a type of integers. */
template <class T>
struct Bounds {
    static constexpr bool is_signed = static_cast<T>(-1) < 0;
    static constexpr T most = static_cast<T>(static_cast<uint64_t>(-1) >> (64 - 8 * sizeof(T) + is_signed));
    static constexpr T least = is_signed ? static_cast<T>(-most - 1) : 0;
};

/* A list of kinds, the basis of tables. */
template <Kind... kinds> struct Kinds {};
using AllKinds = Kinds<
    boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64, complex64, complex128, float16,
    bfloat16, other>;

}
}

#endif
