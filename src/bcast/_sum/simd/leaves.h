/* The leaves that sum: for each kind of terms and each instruction set, the functions of `_sum/simd/leaf.h`.

   Integers wrap in their own width. Floats narrower than float64 are summed in float64, where no sum of them overflows
   and rounding does not show; of float16 eight at a time in float32. float64 is summed in pairs. All of it rests on
   sums being done as they are written: not with -ffast-math. All instruction sets have the same lanes. */

#ifndef BCAST_SUM_LEAVES_H
#define BCAST_SUM_LEAVES_H

#include <string.h>

#include "../../_runtime/cpu.h"
#include "../../_runtime/stream.h"
#include "sum.h"

#define BCAST_JOINED(a, b) bcast_##a##_##b
#define BCAST_JOIN(a, b) BCAST_JOINED(a, b)
#define BCAST_JOINED_3(a, b, c) bcast_##a##_##b##_##c
#define BCAST_JOIN_3(a, b, c) BCAST_JOINED_3(a, b, c)

#ifdef __GNUC__     /* Clang, too: vectors of any length, in as many registers as the machine needs */
#pragma GCC diagnostic ignored "-Wpsabi"    /* no vector leaves the functions that follow */
#define BCAST_SUM_INLINE static inline __attribute__((always_inline))
#define BCAST_SUM_APART static __attribute__((noinline))
#define BCAST_AT(Type, at, i) (((struct { Type value; } __attribute__((packed, may_alias)) *) (at))[i].value)
#define BCAST_VECTOR(Item, lanes) Item __attribute__((vector_size(lanes * sizeof(Item))))
#define BCAST_CONVERT(x, Vector) __builtin_convertvector(x, Vector)
#define BCAST_FETCH(at) __builtin_prefetch(at)
#define BCAST_QUADS 4
#ifdef __clang__
#define BCAST_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef BCAST_VECTOR(int32_t, 4) bcast_i32x4;
typedef BCAST_VECTOR(int64_t, 4) bcast_i64x4;
#define BCAST_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, __builtin_choose_expr(     \
    sizeof(a) == sizeof(bcast_i32x4), ((bcast_i32x4) {__VA_ARGS__}), ((bcast_i64x4) {__VA_ARGS__})))
#endif
#define BCAST_EVEN(a, b) BCAST_SHUFFLE(a, b, 0, 4, 2, 6)
#define BCAST_ODD(a, b) BCAST_SHUFFLE(a, b, 1, 5, 3, 7)
#define BCAST_LOWER(a, b) BCAST_SHUFFLE(a, b, 0, 1, 4, 5)
#define BCAST_UPPER(a, b) BCAST_SHUFFLE(a, b, 2, 3, 6, 7)
#else               /* one lane */
#define BCAST_SUM_INLINE static __inline
#define BCAST_SUM_APART static
#define BCAST_AT(Type, at, i) (((Type *) (at))[i])
#define BCAST_VECTOR(Item, lanes) Item
#define BCAST_CONVERT(x, Vector) ((Vector) (x))
#define BCAST_FETCH(at) (void) 0
#define BCAST_QUADS 1
#endif
typedef BCAST_VECTOR(float, 4) bcast_f32x4;

enum {      /* bytes */
    BCAST_SHORT_ROW = 4096,     /* a page: streams are what the memory fetches ahead, and it ends at one */
    BCAST_LONG_RUN = 524288,    /* whose quarters are streams; those of shorter ones begin too often */
    BCAST_AHEAD = 2048          /* how far terms are fetched ahead: a tenth of a microsecond */
};

/* Of each kind: a term and its bits; what the first few are summed in; the accumulator, how many are a vector, and
   whether there are two; whether terms are converted as they are loaded. */
#define BCAST_KIND(kind, Term, Bits, Work, Acc, width, part_width, paired, converted)    \
    typedef Term bcast_##kind##_term;                                               \
    typedef Acc bcast_##kind##_acc;                                                 \
    typedef BCAST_VECTOR(Bits, width) bcast_##kind##_bits;                          \
    typedef BCAST_VECTOR(Work, width) bcast_##kind##_work;                          \
    typedef BCAST_VECTOR(Acc, part_width) bcast_##kind##_part;                      \
    enum {                                                                          \
        bcast_##kind##_lanes = sizeof(bcast_##kind##_bits) / sizeof(Bits),          \
        bcast_##kind##_parts = bcast_##kind##_lanes * sizeof(Acc) / sizeof(bcast_##kind##_part),    \
        bcast_##kind##_paired = paired,                                             \
        bcast_##kind##_converted = converted                                        \
    };
BCAST_KIND(u8, uint8_t, uint8_t, uint8_t, uint8_t, 32, 32, 0, 0)
BCAST_KIND(u16, uint16_t, uint16_t, uint16_t, uint16_t, 16, 16, 0, 0)
BCAST_KIND(u32, uint32_t, uint32_t, uint32_t, uint32_t, 8, 4, 0, 0)
BCAST_KIND(u64, uint64_t, uint64_t, uint64_t, uint64_t, 4, 4, 0, 0)
BCAST_KIND(f16, uint16_t, uint16_t, float, double, 8, 4, 0, 1)
BCAST_KIND(bf16, uint16_t, uint16_t, double, double, 4, 4, 0, 0)
BCAST_KIND(f32, float, uint32_t, double, double, 4, 4, 0, 1)
BCAST_KIND(f64, double, uint64_t, double, double, 4, 4, 1, 0)
#undef BCAST_KIND

static inline float bcast_f32_of(uint32_t bits) { float value; memcpy(&value, &bits, 4); return value; }
static inline double bcast_f64_of(uint64_t bits) { double value; memcpy(&value, &bits, 8); return value; }
static inline double bcast_bf16_of(uint16_t bits) { return bcast_f32_of((uint32_t) bits << 16); }

/* Moved to where float32 has them, the bits of a float16 are its value times 2^-112, if it is subnormal, too; what says
   infinity or NaN becomes 2^16 or more. */
static inline double bcast_f16_of(uint16_t bits)
{
    const float size = bcast_f32_of((uint32_t) (bits & 0x7fff) << 13) * 0x1p112f;
    uint32_t value;
    memcpy(&value, &size, 4);
    return bcast_f32_of(value | (size >= 0x1p16f ? 0x7f800000 : 0) | (uint32_t) (bits & 0x8000) << 16);
}

/* One term as an accumulator. */
static inline uint8_t bcast_u8_load_one(const char *at) { return BCAST_AT(const uint8_t, at, 0); }
static inline uint16_t bcast_u16_load_one(const char *at) { return BCAST_AT(const uint16_t, at, 0); }
static inline uint32_t bcast_u32_load_one(const char *at) { return BCAST_AT(const uint32_t, at, 0); }
static inline uint64_t bcast_u64_load_one(const char *at) { return BCAST_AT(const uint64_t, at, 0); }
static inline double bcast_f16_load_one(const char *at) { return bcast_f16_of(bcast_u16_load_one(at)); }
static inline double bcast_bf16_load_one(const char *at) { return bcast_bf16_of(bcast_u16_load_one(at)); }
static inline double bcast_f32_load_one(const char *at) { return bcast_f32_of(bcast_u32_load_one(at)); }
static inline double bcast_f64_load_one(const char *at) { return bcast_f64_of(bcast_u64_load_one(at)); }

/* A double rounded once to a float of 16 bits, so many of which are its fraction; ties to even. */
static inline uint16_t bcast_narrowed(double value, int fraction)
{
    const int bias = (1 << (14 - fraction)) - 1, shift = 52 - fraction;
    const uint16_t infinity = (uint16_t) ((2 * bias + 1) << fraction);
    uint64_t bits;
    memcpy(&bits, &value, 8);
    const uint16_t sign = (uint16_t) (bits >> 48 & 0x8000);
    const int exponent = (int) (bits >> 52 & 0x7ff) - 1023;
    bits &= (uint64_t) -1 >> 1;
    if (value != value) return sign | infinity | (uint16_t) (1 << (fraction - 1));
    if (exponent > bias) return sign | infinity;
    if (exponent < 1 - bias) {      /* subnormal: in multiples of the least, to which an addition rounds it */
        double size;
        memcpy(&size, &bits, 8);
        size = size * (fraction == 10 ? 0x1p24 : 0x1p133) + 0x1p52;
        memcpy(&bits, &size, 8);
        return sign | (uint16_t) bits;
    }
    bits = (bits + (((uint64_t) 1 << (shift - 1)) - 1) + (bits >> shift & 1)) >> shift;
    return sign | (uint16_t) (bits - ((uint64_t) (1023 - bias) << fraction));
}

#define ISA plain
#define TARGET
#define BCAST_ONE(Type) ((Type) {0} + 1)
#include "kinds.h"

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#define BCAST_F16C
#define ISA avx2
#define TARGET __attribute__((target("avx2,f16c,fma")))
#define BCAST_ONE(Type) ({ Type one = (Type) {0} + 1; __asm__("" : "+x"(one)); one; })   /* compilers drop a known one */
#include "kinds.h"
#endif

/* The leaves of a target that this machine has; of those for which there are none, those of a lesser one. */
static const bcast_sum_leaf *bcast_sum_leaf_of(int target)
{
#ifdef BCAST_F16C
    if (target == BCAST_AVX2) return &bcast_leaf_avx2;
#endif
    (void) target;
    return &bcast_leaf_plain;
}

#endif
