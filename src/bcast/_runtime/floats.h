/* Single floats and their bits: reading floats of 16 bits, and rounding numbers to them.
   `vectors.h` has the same for vectors. */

#ifndef BCAST_FLOATS_H
#define BCAST_FLOATS_H

#include <stdint.h>
#include <string.h>

#include "target.h"

BCAST_INLINE float bcast_f32_of(uint32_t bits) { float value; memcpy(&value, &bits, 4); return value; }
BCAST_INLINE double bcast_f64_of(uint64_t bits) { double value; memcpy(&value, &bits, 8); return value; }
BCAST_INLINE uint32_t bcast_f32_bits_of(float value) { uint32_t bits; memcpy(&bits, &value, 4); return bits; }
BCAST_INLINE uint64_t bcast_f64_bits_of(double value) { uint64_t bits; memcpy(&bits, &value, 8); return bits; }

BCAST_INLINE float bcast_bf16_of(uint16_t bits) { return bcast_f32_of((uint32_t) bits << 16); }

/* A float32 rounded to bfloat16, ties to even; each NaN becomes the NaN of its sign without a payload. */
BCAST_INLINE uint16_t bcast_bf16_bits_of_f32(float value)
{
    const uint32_t bits = bcast_f32_bits_of(value);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = (bits >> 16 & 0x8000) | 0x7fc0;

    return (uint16_t) (value != value ? nan : rounded);
}

/* A float64 as a float32 that rounds to the same narrower float, such as float16: the last bit is 1 if it is inexact.

   Sizes are compared as integers. Compared as floats, a NaN would raise the flag for invalid operations, even if the
   source checks for infinities and NaN first: Clang computes both sides, and assumes that nobody reads flags. */
BCAST_INLINE float bcast_odd_f32_of(double x)
{
    const float rounded = (float) x;
    const int64_t size = (int64_t) (bcast_f64_bits_of(x) & INT64_MAX);
    const int64_t rounded_size = (int64_t) (bcast_f64_bits_of((double) rounded) & INT64_MAX);
    const uint32_t bits = bcast_f32_bits_of(rounded);
    const int is_finite = (bits & 0x7f800000) != 0x7f800000;
    const int is_inexact = rounded_size != size;

    return bcast_f32_of(is_finite && is_inexact ? (bits - (rounded_size > size)) | 1 : bits);
}

/* The rounding error of `sum`, which is a + b rounded, for numbers or vectors: two_sum (Knuth, TAOCP 2, 4.2.2). */
#define BCAST_TWO_SUM_ERROR(a, b, sum) (((a) - ((sum) - ((sum) - (a)))) + ((b) - ((sum) - (a))))

/* Add a term to a sum, and the rounding error to its error term. */
BCAST_INLINE void bcast_two_sum(double *sum, double *error, double term)
{
    const double total = *sum + term;
    *error += BCAST_TWO_SUM_ERROR(*sum, term, total);
    *sum = total;
}

/* The bits of a double rounded once to a float of 16 bits with infinities and `fraction` bits of fraction; ties to
   even. A NaN becomes the NaN of its sign without a payload. */
static inline uint16_t bcast_narrowed(double value, int fraction)
{
    const int bias = (1 << (14 - fraction)) - 1, shift = 52 - fraction;
    const uint16_t infinity = (uint16_t) ((2 * bias + 1) << fraction);
    uint64_t bits = bcast_f64_bits_of(value);
    const uint16_t sign = (uint16_t) (bits >> 48 & 0x8000);
    const int exponent = (int) (bits >> 52 & 0x7ff) - 1023;

    bits &= (uint64_t) -1 >> 1;
    if (value != value) return (uint16_t) (sign | infinity | 1 << (fraction - 1));
    if (exponent > bias) return sign | infinity;

    if (exponent < 1 - bias) {      /* subnormal: an addition rounds it to multiples of the smallest number */
        const double least = bcast_f64_of((uint64_t) (1022 + bias + fraction) << 52);
        return sign | (uint16_t) bcast_f64_bits_of(bcast_f64_of(bits) * least + 0x1p52);
    }

    bits = (bits + (((uint64_t) 1 << (shift - 1)) - 1) + (bits >> shift & 1)) >> shift;
    return sign | (uint16_t) (bits - ((uint64_t) (1023 - bias) << fraction));
}

BCAST_INLINE uint16_t bcast_bf16_bits_of(double value) { return bcast_narrowed(value, 7); }

/* Every CPU for arm64 converts from and to float16, the compilers' `__fp16`, by one instruction. It rounds a float64
   once, and has the floating-point errors of NumPy's loops, which do the same. MSVC has no such type. */
#if defined(__aarch64__) && defined(__GNUC__)
#define BCAST_HAS_FP16 1

BCAST_INLINE float bcast_f16_of(uint16_t bits)
{
    __fp16 value;
    memcpy(&value, &bits, 2);
    return value;
}

BCAST_INLINE uint16_t bcast_f16_bits_of(double value)
{
    const __fp16 rounded = (__fp16) value;
    uint16_t bits;
    memcpy(&bits, &rounded, 2);
    return bits;
}
#else
#define BCAST_HAS_FP16 0

/* Moved to their places in a float32, the bits of a float16 are its value times 2^-112, also if it is subnormal;
   infinities and NaN become 2^16 or more. */
BCAST_INLINE float bcast_f16_of(uint16_t bits)
{
    const float size = bcast_f32_of((uint32_t) (bits & 0x7fff) << 13) * 0x1p112f;
    const uint32_t special = size >= 0x1p16f ? 0x7f800000 : 0;
    return bcast_f32_of(bcast_f32_bits_of(size) | special | (uint32_t) (bits & 0x8000) << 16);
}

/* A float16 as a float64: a signalling NaN is no error, because its bits are added to the bits of infinity. */
BCAST_INLINE double bcast_quiet_f64_of_f16(uint16_t bits)
{
    const uint16_t payload = (bits & 0x7fff) > 0x7c00 ? bits & 0x3ff : 0;
    const double number = bcast_f16_of((uint16_t) (bits - payload));

    return bcast_f64_of(bcast_f64_bits_of(number) | (uint64_t) payload << 42);
}

/* The flags of `rare` in bcast_f16_bits_of_f32. */
#define BCAST_F16_OVERFLOW 0x80000000u      /* a finite number becomes infinite */
#define BCAST_F16_UNDERFLOW 0x40000000u     /* a number below the smallest normal number is rounded */

/* A float32 rounded to float16, ties to even. `rare` records the errors that NumPy reports. There are no branches, so
   compilers can vectorise it. */
BCAST_INLINE uint16_t bcast_f16_bits_of_f32(float value, uint32_t *rare)
{
    const uint32_t sign = bcast_f32_bits_of(value) >> 16 & 0x8000;
    const uint32_t bits = bcast_f32_bits_of(value) & 0x7fffffff;
    const uint32_t is_tiny = -(uint32_t) (bits < 0x38800000);
    const uint32_t is_large = -(uint32_t) (bits >= 0x477ff000);
    const uint32_t is_nan = -(uint32_t) (bits > 0x7f800000);
    const uint32_t payload = bits >> 13 & 0x3ff;

    const uint32_t tiny_bits = bits & is_tiny;
    const float tiny = bcast_f32_of(tiny_bits) + 0.5f;      /* its last bit is the unit of the smallest number */
    const uint32_t tiny_back = bcast_f32_bits_of(tiny - 0.5f);

    const uint32_t multiples = bcast_f32_bits_of(tiny) - 0x3f000000;
    const uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
    const uint32_t finite = (multiples & is_tiny) | (normal & ~is_tiny);

    *rare |= is_large & -(uint32_t) (bits < 0x7f800000) & BCAST_F16_OVERFLOW;
    *rare |= -(uint32_t) (tiny_back != tiny_bits) & BCAST_F16_UNDERFLOW;
    return (uint16_t) (sign | (finite & ~is_large) | (is_large & 0x7c00) | (is_nan & (payload | (payload == 0))));
}

/* Like bcast_odd_f32_of, but a signalling NaN is no error: its highest bits are moved, none is converted. */
BCAST_INLINE float bcast_quiet_odd_f32_of(double x)
{
    const uint64_t bits = bcast_f64_bits_of(x), size = bits & INT64_MAX;
    const int is_nan = size > 0x7ff0000000000000;
    const float number = bcast_odd_f32_of(bcast_f64_of(is_nan ? 0 : bits));
    const uint32_t nan_bits = (uint32_t) (bits >> 32 & 0x80000000) | 0x7f800001 | (uint32_t) (bits >> 29 & 0x7fffff);

    return bcast_f32_of(is_nan ? nan_bits : bcast_f32_bits_of(number));
}
BCAST_INLINE uint16_t bcast_f16_bits_of(double value) { return bcast_narrowed(value, 10); }
#endif

#endif
