/* Floats and their bits. */

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

/* Every CPU for arm64 converts from float16 and to it, the compilers' `__fp16`, by one instruction. It rounds a float64
   once, and its floating-point errors are those of NumPy's loops, which do the same. MSVC has no such type. */
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

/* Moved to where float32 has them, the bits of a float16 are its value times 2^-112, if it is subnormal, too; what says
   infinity or NaN becomes 2^16 or more. */
BCAST_INLINE float bcast_f16_of(uint16_t bits)
{
    const float size = bcast_f32_of((uint32_t) (bits & 0x7fff) << 13) * 0x1p112f;
    const uint32_t special = size >= 0x1p16f ? 0x7f800000 : 0;
    return bcast_f32_of(bcast_f32_bits_of(size) | special | (uint32_t) (bits & 0x8000) << 16);
}
#endif

#endif
