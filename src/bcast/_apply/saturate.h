/* Numbers as integers of a type that does not hold them all: rounded to whole numbers, ties to the even one, and cut at
   the least and at the most that the type holds. NaN becomes 0. Nothing of that is a floating-point error. */

#ifndef BCAST_SATURATE_H
#define BCAST_SATURATE_H

#include <fenv.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "casts.h"

/* What is converted: F of its name, its type, and a type that holds all its values beside the bounds, with the least and
   the most that this holds; of floats the way in which they are read. */
#define BCAST_CUT_INTEGERS(F, ...)                                                                                  \
    F(i1, int8_t, int32_t, INT32_MIN, INT32_MAX, __VA_ARGS__)                                                       \
    F(u1, uint8_t, int32_t, INT32_MIN, INT32_MAX, __VA_ARGS__)                                                      \
    F(i2, int16_t, int32_t, INT32_MIN, INT32_MAX, __VA_ARGS__)                                                      \
    F(u2, uint16_t, int32_t, INT32_MIN, INT32_MAX, __VA_ARGS__)                                                     \
    F(i4, int32_t, int64_t, INT64_MIN, INT64_MAX, __VA_ARGS__)                                                      \
    F(u4, uint32_t, int64_t, INT64_MIN, INT64_MAX, __VA_ARGS__)                                                     \
    F(i8, int64_t, int64_t, INT64_MIN, INT64_MAX, __VA_ARGS__)                                                      \
    F(u8, uint64_t, uint64_t, 0, UINT64_MAX, __VA_ARGS__)
#define BCAST_CUT_FLOATS(F, ...)                                                                                    \
    F(f4, float, BCAST_VALUE, __VA_ARGS__) F(f8, double, BCAST_VALUE, __VA_ARGS__)                                  \
    F(f2, uint16_t, bcast_f16_of, __VA_ARGS__) F(bf, uint16_t, bcast_bf16_of, __VA_ARGS__)

#define BCAST_CUT_INTEGER(from, From, Wide, LOWEST, HIGHEST, to, To, LEAST, MOST, target, ON)                       \
    ON static void bcast_##target##_##from##_cut_to_##to(ptrdiff_t n, const void *src, void *dst)                   \
    {                                                                                                               \
        const From *x = (const From *) src;                                                                         \
        To *y = (To *) dst;                                                                                         \
        const Wide least = (int64_t) (LEAST) < (int64_t) (LOWEST) ? (Wide) (LOWEST) : (Wide) (LEAST);               \
        const Wide most = (uint64_t) (MOST) > (uint64_t) (HIGHEST) ? (Wide) (HIGHEST) : (Wide) (MOST);              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            const Wide value = (Wide) x[i];                                                                         \
            y[i] = (To) (value < least ? least : value > most ? most : value);                                      \
        }                                                                                                           \
    }

/* To integers of 8, 16 and 32 bits, whose bounds the type `Value` of floats holds exactly: by way of `Middle`. */
#define BCAST_CUT_FLOAT(from, From, VALUE, to, To, Middle, Value, ROUND, LEAST, MOST, target, ON)                   \
    ON static void bcast_##target##_##from##_cut_to_##to(ptrdiff_t n, const void *src, void *dst)                   \
    {                                                                                                               \
        const From *x = (const From *) src;                                                                         \
        To *y = (To *) dst;                                                                                         \
        const Value least = (Value) (LEAST), most = (Value) (MOST);                                                 \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            const Value value = (Value) VALUE(x[i]);                                                                \
            const Value number = value == value ? value : 0;                                                        \
            const Value above = number > least ? number : least;                                                    \
            y[i] = (To) (Middle) ROUND(above < most ? above : most);                                                \
        }                                                                                                           \
        if (fetestexcept(FE_INVALID)) feclearexcept(FE_INVALID);    /* of NaN that signals */                       \
    }
/* To those of 64 bits, beside the most of which float64 has only the next power of two. */
#define BCAST_CUT_FLOAT_TO_LONG(from, From, VALUE, to, To, LEAST, MOST, target, ON)                                 \
    ON static void bcast_##target##_##from##_cut_to_##to(ptrdiff_t n, const void *src, void *dst)                   \
    {                                                                                                               \
        const From *x = (const From *) src;                                                                         \
        To *y = (To *) dst;                                                                                         \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            const double value = (double) VALUE(x[i]), number = value == value ? value : 0;                         \
            const double above = number > (double) (LEAST) ? number : (double) (LEAST);                             \
            y[i] = above >= (double) (MOST) ? MOST : (To) rint(above);                                              \
        }                                                                                                           \
        if (fetestexcept(FE_INVALID)) feclearexcept(FE_INVALID);                                                    \
    }

#define BCAST_CUT_TO_SHORT(to, To, LEAST, MOST, target, ON)                                                         \
    BCAST_CUT_INTEGERS(BCAST_CUT_INTEGER, to, To, LEAST, MOST, target, ON)                                          \
    BCAST_CUT_FLOAT(f4, float, BCAST_VALUE, to, To, int32_t, float, rintf, LEAST, MOST, target, ON)                 \
    BCAST_CUT_FLOAT(f8, double, BCAST_VALUE, to, To, int32_t, double, rint, LEAST, MOST, target, ON)                \
    BCAST_CUT_FLOAT(f2, uint16_t, bcast_f16_of, to, To, int32_t, float, rintf, LEAST, MOST, target, ON)             \
    BCAST_CUT_FLOAT(bf, uint16_t, bcast_bf16_of, to, To, int32_t, float, rintf, LEAST, MOST, target, ON)
#define BCAST_CUT_TO_WORD(to, To, Middle, LEAST, MOST, target, ON)                                                  \
    BCAST_CUT_INTEGERS(BCAST_CUT_INTEGER, to, To, LEAST, MOST, target, ON)                                          \
    BCAST_CUT_FLOATS(BCAST_CUT_FLOAT, to, To, Middle, double, rint, LEAST, MOST, target, ON)
#define BCAST_CUT_TO_LONG(to, To, LEAST, MOST, target, ON)                                                          \
    BCAST_CUT_INTEGERS(BCAST_CUT_INTEGER, to, To, LEAST, MOST, target, ON)                                          \
    BCAST_CUT_FLOATS(BCAST_CUT_FLOAT_TO_LONG, to, To, LEAST, MOST, target, ON)
#define BCAST_CUTS_ON(target, ON)                                                                                   \
    BCAST_CUT_TO_SHORT(i1, int8_t, INT8_MIN, INT8_MAX, target, ON)                                                  \
    BCAST_CUT_TO_SHORT(u1, uint8_t, 0, UINT8_MAX, target, ON)                                                       \
    BCAST_CUT_TO_SHORT(i2, int16_t, INT16_MIN, INT16_MAX, target, ON)                                               \
    BCAST_CUT_TO_SHORT(u2, uint16_t, 0, UINT16_MAX, target, ON)                                                     \
    BCAST_CUT_TO_WORD(i4, int32_t, int32_t, INT32_MIN, INT32_MAX, target, ON)                                       \
    BCAST_CUT_TO_WORD(u4, uint32_t, int64_t, 0, UINT32_MAX, target, ON)                                             \
    BCAST_CUT_TO_LONG(i8, int64_t, INT64_MIN, INT64_MAX, target, ON)                                                \
    BCAST_CUT_TO_LONG(u8, uint64_t, 0, UINT64_MAX, target, ON)
BCAST_CUTS_ON(plain, )
BCAST_CUTS_ON(wide, BCAST_ON_WIDE)

/* What converts from one type to another so, by NumPy's numbers for them; NULL where nothing here does. */
#define BCAST_CUT_NAME(from, to, target) bcast_##target##_##from##_cut_to_##to
#define BCAST_CUT_ROW(to, target)                                                                                   \
    {NULL, BCAST_CUT_NAME(i1, to, target), BCAST_CUT_NAME(u1, to, target), BCAST_CUT_NAME(i2, to, target),          \
     BCAST_CUT_NAME(u2, to, target), BCAST_CUT_NAME(i4, to, target), BCAST_CUT_NAME(u4, to, target),                \
     BCAST_CUT_NAME(i8, to, target), BCAST_CUT_NAME(u8, to, target), BCAST_CUT_NAME(f4, to, target),                \
     BCAST_CUT_NAME(f8, to, target), NULL, NULL, BCAST_CUT_NAME(f2, to, target), BCAST_CUT_NAME(bf, to, target)}
#define BCAST_CUT_ROWS(target)                                                                                      \
    {BCAST_CUT_ROW(i1, target), BCAST_CUT_ROW(u1, target), BCAST_CUT_ROW(i2, target), BCAST_CUT_ROW(u2, target),    \
     BCAST_CUT_ROW(i4, target), BCAST_CUT_ROW(u4, target), BCAST_CUT_ROW(i8, target), BCAST_CUT_ROW(u8, target)}
static inline bcast_cast bcast_saturating_cast_of(int target, int from, int to, int bfloat16)
{
    static const bcast_cast plain[8][15] = BCAST_CUT_ROWS(plain), wide[8][15] = BCAST_CUT_ROWS(wide);
    const int src = bcast_cast_place(from, bfloat16), dst = bcast_cast_place(to, bfloat16);
    if (src < 0 || dst < 1 || dst > 8) return NULL;
    return (target >= BCAST_WIDE ? wide : plain)[dst - 1][src];
}

#endif
