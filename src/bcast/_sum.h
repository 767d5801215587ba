/* The leaves that sum: for each kind of terms and each instruction set, the functions of `_sum_leaf.h`.

   Integers wrap in their own width. Floats narrower than float64 are summed in float64, where no sum of them overflows and
   rounding does not show; of float16 eight at a time in float32. float64 is summed in pairs. All of it rests on sums being
   done as they are written: not with -ffast-math. Lanes are as many everywhere, so that all machines give the same bits. */

#ifndef BCAST_SUM_H
#define BCAST_SUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BCAST_U8, BCAST_U16, BCAST_U32, BCAST_U64, BCAST_F16, BCAST_BF16, BCAST_F32, BCAST_F64, BCAST_KINDS };

typedef struct {
    void (*add_rows)(
        void *high, void *low, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t row_step,
        ptrdiff_t m, int add);
    void (*add_runs)(void *high, void *low, const char *x, ptrdiff_t count, ptrdiff_t step, ptrdiff_t n, int add);
    void (*add_accumulators)(void *high, void *low, const void *high_2, const void *low_2, ptrdiff_t n);
} bcast_sums;

#define BCAST_JOINED(a, b) bcast_##a##_##b
#define BCAST_JOIN(a, b) BCAST_JOINED(a, b)
#define BCAST_JOINED_3(a, b, c) bcast_##a##_##b##_##c
#define BCAST_JOIN_3(a, b, c) BCAST_JOINED_3(a, b, c)

#ifdef __GNUC__     /* Clang, too: vectors of any length, in as many registers as the machine needs */
#pragma GCC diagnostic ignored "-Wpsabi"    /* no vector leaves the functions that follow */
#define BCAST_SUM_INLINE static inline __attribute__((always_inline))
#define BCAST_CONVERT(x, Vector) __builtin_convertvector(x, Vector)
#define BCAST_VECTOR(Item, lanes) Item __attribute__((vector_size(lanes * sizeof(Item))))
typedef BCAST_VECTOR(uint16_t, 4) bcast_u16x4;
typedef BCAST_VECTOR(uint16_t, 8) bcast_u16x8;
typedef BCAST_VECTOR(uint32_t, 4) bcast_u32x4;
typedef BCAST_VECTOR(float, 4) bcast_f32x4;
#else               /* one lane */
#define BCAST_SUM_INLINE static __inline
#define BCAST_CONVERT(x, Vector) ((Vector) (x))
#define BCAST_VECTOR(Item, lanes) Item
typedef float bcast_f32x4;
#endif

/* Of each kind: a term; what the first few of them are summed in; the accumulator, and whether there are two. */
#define BCAST_KIND(kind, Term, Work, Acc, lanes, paired)                            \
    typedef Term bcast_##kind##_term;                                               \
    typedef Acc bcast_##kind##_acc;                                                 \
    typedef BCAST_VECTOR(Work, lanes) bcast_##kind##_work;                          \
    typedef BCAST_VECTOR(Acc, lanes) bcast_##kind##_total;                          \
    enum { bcast_##kind##_lanes = sizeof(bcast_##kind##_total) / sizeof(Acc), bcast_##kind##_paired = paired };
BCAST_KIND(u8, uint8_t, uint8_t, uint8_t, 32, 0)
BCAST_KIND(u16, uint16_t, uint16_t, uint16_t, 16, 0)
BCAST_KIND(u32, uint32_t, uint32_t, uint32_t, 8, 0)
BCAST_KIND(u64, uint64_t, uint64_t, uint64_t, 4, 0)
BCAST_KIND(f16, uint16_t, float, double, 8, 0)
BCAST_KIND(bf16, uint16_t, double, double, 4, 0)
BCAST_KIND(f32, float, double, double, 4, 0)
BCAST_KIND(f64, double, double, double, 4, 1)
#undef BCAST_KIND

/* One term as an accumulator. */
static inline uint8_t bcast_u8_load_one(const char *at) { return (uint8_t) *at; }
static inline uint16_t bcast_u16_load_one(const char *at) { uint16_t term; memcpy(&term, at, 2); return term; }
static inline uint32_t bcast_u32_load_one(const char *at) { uint32_t term; memcpy(&term, at, 4); return term; }
static inline uint64_t bcast_u64_load_one(const char *at) { uint64_t term; memcpy(&term, at, 8); return term; }
static inline double bcast_f32_load_one(const char *at) { float term; memcpy(&term, at, 4); return term; }
static inline double bcast_f64_load_one(const char *at) { double term; memcpy(&term, at, 8); return term; }

static inline float bcast_float_of(uint32_t bits) { float value; memcpy(&value, &bits, 4); return value; }

static inline double bcast_bf16_load_one(const char *at) { return bcast_float_of((uint32_t) bcast_u16_load_one(at) << 16); }

/* Moved to where float32 has them, the bits of a float16 are its value times 2^-112, if it is subnormal, too; what says
   infinity or NaN becomes 2^16 or more. */
static inline double bcast_f16_load_one(const char *at)
{
    const uint32_t bits = bcast_u16_load_one(at);
    const float size = bcast_float_of((bits & 0x7fff) << 13) * 0x1p112f;
    uint32_t value;
    memcpy(&value, &size, 4);
    return bcast_float_of(value | (size >= 0x1p16f ? 0x7f800000 : 0) | (bits & 0x8000) << 16);
}

#define ISA plain
#define TARGET
#include "_sum_kinds.h"

#if defined(__GNUC__) && defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define BCAST_SUM_AVX2
#define F16C
#define ISA avx2
#define TARGET __attribute__((target("avx2,f16c")))
#include "_sum_kinds.h"
#endif

/* The leaves of one instruction set, by kinds; NULL where this machine lacks it. */
static const bcast_sums *bcast_sums_of(const char *leaf)
{
#ifdef BCAST_SUM_AVX2
    unsigned a, b, c = 0, d;
    if (!strcmp(leaf, "avx2") && __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C))
        return bcast_sums_avx2;
#endif
    return strcmp(leaf, "plain") ? NULL : bcast_sums_plain;
}

#endif
