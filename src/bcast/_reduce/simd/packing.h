/* Packing: terms that kernels cannot read in place are written contiguously, in a form that kernels read. */

#ifndef BCAST_PACKING_H
#define BCAST_PACKING_H

#include "dtypes.h"

namespace bcast {

/* The value of an integer of 64 bits, rounded once. Its halves become the last digits of 2^84 and of 2^52, and these
   powers are then subtracted. Compilers vectorise this, but not conversions on old CPUs. */
BCAST_INLINE double value_of_64(const bool has_sign, uint64_t bits)
{
    const uint64_t sign = has_sign ? 0x80000000 : 0;
    const double high = bcast_f64_of((bits >> 32 ^ sign) | 0x4530000000000000);
    const double low = bcast_f64_of((bits & 0xffffffff) | 0x4330000000000000);

    return high - (has_sign ? 0x1p84 + 0x1p63 + 0x1p52 : 0x1p84 + 0x1p52) + low;
}

/* Items of a dtype: floats unchanged, integers widened to 64 bits; or, `as_real`, values as float64. */
template <int dtype, bool as_real>
BCAST_INLINE void pack_at(const ptrdiff_t stride, char *dst, const char *src, ptrdiff_t n)
{
    const int packed = bcast_dtypes[dtype].is_float && !as_real ? dtype : BCAST_UINT64;

    if constexpr (as_real && (dtype == BCAST_INT64 || dtype == BCAST_UINT64)) {
        for (ptrdiff_t i = 0; i < n; i++) {
            uint64_t bits;
            memcpy(&bits, src + i * stride, sizeof bits);
            const double value = value_of_64(dtype == BCAST_INT64, bits);
            memcpy(dst + i * sizeof value, &value, sizeof value);
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        bcast_write(packed, 0, dst + i * bcast_dtypes[packed].size, bcast_read(dtype, as_real, src + i * stride));
}

/* Compilers vectorise adjacent items, and every second item, such as the real parts of complex numbers. */
template <int dtype, bool as_real>
BCAST_INLINE void pack_dtype(char *dst, const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    const ptrdiff_t size = bcast_dtypes[dtype].size;

    if (stride == size) pack_at<dtype, as_real>(size, dst, src, n);
    else if (stride == 2 * size) pack_at<dtype, as_real>(2 * size, dst, src, n);
    else pack_at<dtype, as_real>(stride, dst, src, n);
}

#define BCAST_CASE_PACK(NAME, ...)                                                          \
    case BCAST_##NAME:                                                                      \
        if (as_real) pack_dtype<BCAST_##NAME, true>(dst, src, stride, n);                   \
        else pack_dtype<BCAST_##NAME, false>(dst, src, stride, n);                          \
        break;
BCAST_INLINE void pack(int dtype, bool as_real, char *dst, const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    switch (dtype) { BCAST_DTYPES(BCAST_CASE_PACK) }
}

}

#endif
