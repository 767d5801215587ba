/* The dtypes of terms and results: conversions to and from what is summed, and packing. */

#ifndef BCAST_SUM_DTYPES_H
#define BCAST_SUM_DTYPES_H

#include <string.h>

#include "sum.h"
#include "table.h"
#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"

/* The bits of a double rounded once to a float of 16 bits with infinities, so many of which are its fraction; ties to
   even. */
static inline uint16_t bcast_narrowed(double value, int fraction)
{
    const int bias = (1 << (14 - fraction)) - 1, shift = 52 - fraction;
    const uint16_t infinity = (uint16_t) ((2 * bias + 1) << fraction);
    uint64_t bits = bcast_f64_bits_of(value);
    const uint16_t sign = (uint16_t) (bits >> 48 & 0x8000);
    const int exponent = (int) (bits >> 52 & 0x7ff) - 1023;
    bits &= (uint64_t) -1 >> 1;
    if (value != value) return sign | infinity | (uint16_t) (1 << (fraction - 1));
    if (exponent > bias) return sign | infinity;
    if (exponent < 1 - bias) {      /* subnormal: in multiples of the least, to which an addition rounds it */
        const double least = bcast_f64_of((uint64_t) (1022 + bias + fraction) << 52);
        return sign | (uint16_t) bcast_f64_bits_of(bcast_f64_of(bits) * least + 0x1p52);
    }
    bits = (bits + (((uint64_t) 1 << (shift - 1)) - 1) + (bits >> shift & 1)) >> shift;
    return sign | (uint16_t) (bits - ((uint64_t) (1023 - bias) << fraction));
}

#if BCAST_HAS_FP16
#define BCAST_ROUNDED_TO_F16(y) bcast_f16_bits_of(y)
#else
#define BCAST_ROUNDED_TO_F16(y) bcast_narrowed(y, 10)
#endif

/* The bits of the item at `at`, those of integers widened to 64, in which sums wrap as in fewer; or the bits of its
   value as a float64. A dtype that the compiler knows costs nothing. */
#define BCAST_CASE_READ(NAME, Bits, is_float, kind, value, ...)                                         \
    case BCAST_##NAME: {                                                                                \
        Bits x;                                                                                         \
        memcpy(&x, at, sizeof x);                                                                       \
        return as_real ? bcast_f64_bits_of((double) (value)) : is_float ? x : (uint64_t) (value);       \
    }
BCAST_INLINE uint64_t bcast_read(const int dtype, const int as_real, const char *at)
{
    switch (dtype) { BCAST_DTYPES(BCAST_CASE_READ) }
    return 0;
}

/* Write an item of these bits, or of those of a float64, rounded. */
#define BCAST_CASE_WRITE(NAME, Bits, is_float, kind, value, rounded, name) \
    case BCAST_##NAME: { const Bits x = (Bits) (from_real ? rounded : bits); memcpy(dst, &x, sizeof x); break; }
BCAST_INLINE void bcast_write(const int dtype, const int from_real, char *dst, uint64_t bits)
{
    const double y = bcast_f64_of(bits);
    switch (dtype) { BCAST_DTYPES(BCAST_CASE_WRITE) }
}

BCAST_INLINE void bcast_pack_as(
    const int dtype, const int as_real, const ptrdiff_t stride, char *dst, const char *src, ptrdiff_t n)
{
    const int as = bcast_dtypes[dtype].is_float && !as_real ? dtype : BCAST_UINT64;
    for (ptrdiff_t i = 0; i < n; i++)
        bcast_write(as, 0, dst + i * bcast_dtypes[as].size, bcast_read(dtype, as_real, src + i * stride));
}

/* Compilers make vectors of adjacent items and of every second one, as the real parts of complex numbers are. */
BCAST_INLINE void bcast_pack_dtype(
    const int dtype, const int as_real, char *dst, const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    const ptrdiff_t size = bcast_dtypes[dtype].size;
    if (stride == size) bcast_pack_as(dtype, as_real, size, dst, src, n);
    else if (stride == 2 * size) bcast_pack_as(dtype, as_real, 2 * size, dst, src, n);
    else bcast_pack_as(dtype, as_real, stride, dst, src, n);
}

/* Write the `n` terms at src, src + stride, ... one after the other, as the kernels read them. */
#define BCAST_CASE_PACK(NAME, ...)                                                      \
    case BCAST_##NAME:                                                                  \
        if (as_real) bcast_pack_dtype(BCAST_##NAME, 1, dst, src, stride, n);              \
        else bcast_pack_dtype(BCAST_##NAME, 0, dst, src, stride, n);                      \
        break;
BCAST_ALIGNED BCAST_APART void bcast_pack(
    int dtype, int as_real, char *dst, const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    switch (dtype) { BCAST_DTYPES(BCAST_CASE_PACK) }
}

#endif
