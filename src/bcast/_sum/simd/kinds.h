/* The leaves of one instruction set, ISA, for all kinds: `_sum/simd/leaves.h` includes this file for each. */

/* LANES terms as a Work; and what a mask leaves of them. */
#define BCAST_LOAD(kind, Terms, loaded)                                                                 \
TARGET BCAST_SUM_INLINE BCAST_JOIN(kind, work) BCAST_JOIN_3(load, kind, ISA)(const char *at)            \
{                                                                                                       \
    const Terms x = BCAST_AT(Terms, at, 0);                                                             \
    return loaded;                                                                                      \
}                                                                                                       \
TARGET BCAST_SUM_INLINE BCAST_JOIN(kind, work) BCAST_JOIN_3(load_masked, kind, ISA)(                    \
    const char *at, const void *mask)                                                                   \
{                                                                                                       \
    typedef BCAST_JOIN(kind, bits) Bits;                                                                \
    const Terms x = (Terms) (BCAST_AT(Bits, at, 0) & BCAST_AT(Bits, mask, 0));                          \
    return loaded;                                                                                      \
}
BCAST_LOAD(u8, bcast_u8_work, x)
BCAST_LOAD(u16, bcast_u16_work, x)
BCAST_LOAD(u32, bcast_u32_work, x)
BCAST_LOAD(u64, bcast_u64_work, x)
BCAST_LOAD(f64, bcast_f64_work, x)
#if defined(BCAST_F16C)     /* what compilers make of the others has several times the instructions */
BCAST_LOAD(f32, __m128, _mm256_cvtps_pd(x))
BCAST_LOAD(bf16, bcast_bf16_bits,
    _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_set_epi64x(0, (int64_t) x)), 16))))
BCAST_LOAD(f16, __m128i, _mm256_cvtph_ps(x))
#elif defined(__GNUC__)
TARGET BCAST_SUM_INLINE bcast_f16_work BCAST_JOIN_3(widened, f16, ISA)(const bcast_f16_bits *x)
{   /* as bcast_f16_of */
    const bcast_u32_work bits = BCAST_CONVERT(*x, bcast_u32_work);
    const bcast_f16_work size = (bcast_f16_work) ((bits & 0x7fff) << 13) * 0x1p112f;
    const bcast_u32_work special = (bcast_u32_work) (size >= 0x1p16f) & 0x7f800000;
    return (bcast_f16_work) ((bcast_u32_work) size | special | (bits & 0x8000) << 16);
}
BCAST_LOAD(f32, bcast_f32x4, BCAST_CONVERT(x, bcast_f32_work))
BCAST_LOAD(bf16, bcast_bf16_bits,
    BCAST_CONVERT((bcast_f32x4) (BCAST_CONVERT(x, bcast_f32_bits) << 16), bcast_bf16_work))
BCAST_LOAD(f16, bcast_f16_bits, BCAST_JOIN_3(widened, f16, ISA)(&x))
#else
BCAST_LOAD(f32, bcast_f32_bits, bcast_f32_of(x))
BCAST_LOAD(bf16, bcast_bf16_bits, bcast_bf16_of(x))
BCAST_LOAD(f16, bcast_f16_bits, (float) bcast_f16_of(x))
#endif
#undef BCAST_LOAD
/* The part `i` of a Work, as accumulators; float16's have two. */
#define BCAST_PART(kind, value)                                                                         \
TARGET BCAST_SUM_INLINE BCAST_JOIN(kind, part) BCAST_JOIN_3(part, kind, ISA)(                           \
    const BCAST_JOIN(kind, work) *sum, int i)                                                           \
{                                                                                                       \
    (void) i;                                                                                           \
    return value;                                                                                       \
}
BCAST_PART(u8, *sum)
BCAST_PART(u16, *sum)
BCAST_PART(u32, BCAST_AT(bcast_u32_part, sum, i))
BCAST_PART(u64, *sum)
BCAST_PART(bf16, *sum)
BCAST_PART(f32, *sum)
BCAST_PART(f64, *sum)
#ifdef BCAST_F16C
BCAST_PART(f16, _mm256_cvtps_pd(i ? _mm256_extractf128_ps(*sum, 1) : _mm256_castps256_ps128(*sum)))
#else
BCAST_PART(f16, BCAST_CONVERT(BCAST_AT(bcast_f32x4, sum, i), bcast_f16_part))
#endif
#undef BCAST_PART

#if BCAST_QUADS > 1
/* Four pairs of float32 summed as they are, which rounds no sum of two otherwise than by way of float64. */
TARGET BCAST_SUM_INLINE void BCAST_JOIN_3(put_pairs, f32, ISA)(char *to, const char *x)
{
    const bcast_f32x4 a = BCAST_AT(bcast_f32x4, x, 0), b = BCAST_AT(bcast_f32x4, x, 1);
    BCAST_AT(bcast_f32x4, to, 0) = BCAST_SHUFFLE(a, b, 0, 2, 4, 6) + BCAST_SHUFFLE(a, b, 1, 3, 5, 7);
}

/* Four sums as results side by side. */
#define BCAST_PUT_AS(kind, Results, value)                                                              \
TARGET BCAST_SUM_INLINE void BCAST_JOIN_3(put, kind, ISA)(char *to, const BCAST_JOIN(kind, part) *sum)  \
{                                                                                                       \
    BCAST_AT(Results, to, 0) = value;                                                                   \
}
BCAST_PUT_AS(f32, bcast_f32x4, BCAST_CONVERT(*sum, bcast_f32x4))
BCAST_PUT_AS(f64, bcast_f64_part, *sum)
#ifdef BCAST_F16C   /* by way of float32, in whose last place an odd number stands for all between it and the next */
BCAST_PUT_AS(u32, bcast_u32_part, *sum)
TARGET BCAST_SUM_INLINE void BCAST_JOIN_3(put, f16, ISA)(char *to, const bcast_f16_part *sum)
{
    const bcast_f64_bits all = (bcast_f64_bits) *sum, low = all & 0x1fffffff;
    const __m128 odd = _mm256_cvtpd_ps((__m256d) ((all | (low + 0x1fffffff)) & ~(uint64_t) 0x1fffffff));
    _mm_storel_epi64((__m128i *) to, _mm_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT));
}
#endif
#undef BCAST_PUT_AS
#endif

#define QUADS 0     /* whether four accumulators are a vector */
#define PUTS 0      /* whether sums of short runs are put: a fifth of all code, and so not for each kind */
#define KIND u8
#include "leaf.h"
#define KIND u16
#include "leaf.h"
#undef QUADS
#define QUADS (BCAST_QUADS > 1)
#define KIND u64
#include "leaf.h"
#define KIND bf16
#include "leaf.h"
#ifdef BCAST_F16C
#undef PUTS
#define PUTS QUADS
#endif
#define KIND u32
#include "leaf.h"
#define KIND f16
#include "leaf.h"
#undef PUTS
#define PUTS QUADS
#define KIND f32
#include "leaf.h"
#define KIND f64
#include "leaf.h"
#undef PUTS
#undef QUADS

/* Sums of type Sum written as results; side by side mostly, where compilers make vectors of it. */
#define BCAST_STORE(name, Sum, Result, value)                                                           \
TARGET static void BCAST_JOIN_3(store, name, ISA)(char *to, ptrdiff_t step, const void *sums, ptrdiff_t n)      \
{                                                                                                       \
    const Sum *from = sums;                                                                             \
    ptrdiff_t i = 0;                                                                                    \
    if (step == sizeof(Result)) {                                                                       \
        BCAST_STORE_VECTORS                                                                             \
        for (; i < n; i++) { const Sum sum = from[i]; BCAST_AT(Result, to, i) = (Result) (value); }     \
    }                                                                                                   \
    for (; i < n; i++) { const Sum sum = from[i]; BCAST_AT(Result, to + i * step, 0) = (Result) (value); }      \
}
#define BCAST_STORE_VECTORS
BCAST_STORE(u8, uint8_t, uint8_t, sum)
BCAST_STORE(u16, uint16_t, uint16_t, sum)
BCAST_STORE(u32, uint32_t, uint32_t, sum)
BCAST_STORE(u64, uint64_t, uint64_t, sum)
BCAST_STORE(wide_u8, uint64_t, uint8_t, sum)
BCAST_STORE(wide_u16, uint64_t, uint16_t, sum)
BCAST_STORE(wide_u32, uint64_t, uint32_t, sum)
BCAST_STORE(bf16, double, uint16_t, bcast_narrowed(sum, 7))
BCAST_STORE(f32, double, float, sum)
BCAST_STORE(f64, double, double, sum)
#ifdef BCAST_F16C
#undef BCAST_STORE_VECTORS
#define BCAST_STORE_VECTORS                                                                             \
    for (; i + 4 <= n; i += 4) {                                                                        \
        const bcast_f16_part four = BCAST_AT(bcast_f16_part, from + i, 0);                              \
        BCAST_JOIN_3(put, f16, ISA)(to + 2 * i, &four);                                                 \
    }
#endif
BCAST_STORE(f16, double, uint16_t, bcast_narrowed(sum, 10))
#undef BCAST_STORE_VECTORS
#undef BCAST_STORE

/* high[i] += low[i]; tells whether one of the sums is infinite or no number. */
TARGET static int BCAST_JOIN(merge, ISA)(double *high, const double *low, ptrdiff_t n)
{
    uint64_t special = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t bits;
        high[i] += low[i];
        memcpy(&bits, &high[i], 8);
        special |= (bits & 0x7fffffffffffffff) + 0x0010000000000000;    /* sets the sign of those alone */
    }
    return special >> 63 != 0;
}

#define BCAST_SUMS(kind, put_runs, put_rows, m)                                                         \
    {BCAST_JOIN_3(add_rows, kind, ISA), BCAST_JOIN_3(add_runs, kind, ISA), put_runs, put_rows,          \
        BCAST_JOIN_3(add_accumulators, kind, ISA), m, BCAST_JOIN(kind, lanes)}
#define BCAST_SUMS_PUT(kind)                                                                            \
    BCAST_SUMS(kind, BCAST_JOIN_3(put_runs, kind, ISA), BCAST_JOIN_3(put_rows, kind, ISA), BCAST_QUADS)
#define BCAST_SUMS_ADD(kind) BCAST_SUMS(kind, NULL, NULL, BCAST_QUADS)
#if BCAST_QUADS == 1
#define BCAST_SUMS_FLOAT BCAST_SUMS_ADD
#else
#define BCAST_SUMS_FLOAT BCAST_SUMS_PUT
#endif
#ifdef BCAST_F16C
#define BCAST_SUMS_NARROW BCAST_SUMS_PUT
#else
#define BCAST_SUMS_NARROW BCAST_SUMS_ADD
#endif
#define BCAST_STORES(kind) BCAST_JOIN_3(store, kind, ISA)
static const bcast_sum_leaf BCAST_JOIN(leaf, ISA) = {
    {
        BCAST_SUMS(u8, NULL, NULL, 1), BCAST_SUMS(u16, NULL, NULL, 1), BCAST_SUMS_NARROW(u32), BCAST_SUMS_ADD(u64),
        BCAST_SUMS_NARROW(f16), BCAST_SUMS_ADD(bf16), BCAST_SUMS_FLOAT(f32), BCAST_SUMS_FLOAT(f64),
    },
    {
        NULL, BCAST_STORES(u8), BCAST_STORES(u16), BCAST_STORES(u32), BCAST_STORES(u64),
        BCAST_STORES(u8), BCAST_STORES(u16), BCAST_STORES(u32), BCAST_STORES(u64),
        BCAST_STORES(f16), BCAST_STORES(bf16), BCAST_STORES(f32), BCAST_STORES(f64),
    },
    {
        NULL, BCAST_STORES(wide_u8), BCAST_STORES(wide_u16), BCAST_STORES(wide_u32), BCAST_STORES(u64),
        BCAST_STORES(wide_u8), BCAST_STORES(wide_u16), BCAST_STORES(wide_u32), BCAST_STORES(u64),
    },
    BCAST_JOIN(merge, ISA),
};
#undef BCAST_SUMS
#undef BCAST_SUMS_PUT
#undef BCAST_SUMS_ADD
#undef BCAST_SUMS_FLOAT
#undef BCAST_SUMS_NARROW
#undef BCAST_STORES
#undef ISA
#undef TARGET
#undef BCAST_ONE
