/* The leaves of one instruction set, ISA, for all kinds: `_sum.h` includes this file for each. */

#define BCAST_LOAD(kind, Terms, loaded)                                                                 \
TARGET BCAST_SUM_INLINE BCAST_JOIN(kind, work) BCAST_JOIN_3(load, kind, ISA)(const char *at)            \
{                                                                                                       \
    Terms x;                                                                                            \
    memcpy(&x, at, sizeof x);                                                                           \
    return loaded;                                                                                      \
}
BCAST_LOAD(u8, bcast_u8_work, x)
BCAST_LOAD(u16, bcast_u16_work, x)
BCAST_LOAD(u32, bcast_u32_work, x)
BCAST_LOAD(u64, bcast_u64_work, x)
BCAST_LOAD(f32, bcast_f32x4, BCAST_CONVERT(x, bcast_f32_work))
BCAST_LOAD(f64, bcast_f64_work, x)

#ifndef __GNUC__
TARGET BCAST_SUM_INLINE bcast_bf16_work BCAST_JOIN_3(load, bf16, ISA)(const char *at) { return bcast_bf16_load_one(at); }
TARGET BCAST_SUM_INLINE bcast_f16_work BCAST_JOIN_3(load, f16, ISA)(const char *at) { return (float) bcast_f16_load_one(at); }
#else
BCAST_LOAD(bf16, bcast_u16x4, BCAST_CONVERT((bcast_f32x4) (BCAST_CONVERT(x, bcast_u32x4) << 16), bcast_bf16_work))
#ifdef F16C
BCAST_LOAD(f16, __m128i, _mm256_cvtph_ps(x))
#else
TARGET BCAST_SUM_INLINE bcast_f16_work BCAST_JOIN_3(load, f16, ISA)(const char *at)     /* as bcast_f16_load_one */
{
    bcast_u16x8 x;
    memcpy(&x, at, sizeof x);
    const bcast_u32_work bits = BCAST_CONVERT(x, bcast_u32_work);
    const bcast_f16_work size = (bcast_f16_work) ((bits & 0x7fff) << 13) * 0x1p112f;
    const bcast_u32_work special = (bcast_u32_work) (size >= 0x1p16f) & 0x7f800000;
    return (bcast_f16_work) ((bcast_u32_work) size | special | (bits & 0x8000) << 16);
}
#endif
#endif
#undef BCAST_LOAD

#define KIND u8
#include "_sum_leaf.h"
#define KIND u16
#include "_sum_leaf.h"
#define KIND u32
#include "_sum_leaf.h"
#define KIND u64
#include "_sum_leaf.h"
#define KIND f16
#include "_sum_leaf.h"
#define KIND bf16
#include "_sum_leaf.h"
#define KIND f32
#include "_sum_leaf.h"
#define KIND f64
#include "_sum_leaf.h"

#define BCAST_SUMS(kind) \
    {BCAST_JOIN_3(add_rows, kind, ISA), BCAST_JOIN_3(add_runs, kind, ISA), BCAST_JOIN_3(add_accumulators, kind, ISA)}
static const bcast_sums BCAST_JOIN(sums, ISA)[BCAST_KINDS] = {
    BCAST_SUMS(u8), BCAST_SUMS(u16), BCAST_SUMS(u32), BCAST_SUMS(u64),
    BCAST_SUMS(f16), BCAST_SUMS(bf16), BCAST_SUMS(f32), BCAST_SUMS(f64),
};
#undef BCAST_SUMS
#undef ISA
#undef TARGET
