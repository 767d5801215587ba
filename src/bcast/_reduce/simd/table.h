/* The table of the dtypes that kernels read. */

#ifndef BCAST_SUM_TABLE_H
#define BCAST_SUM_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "sum.h"

/* The dtypes, one row each: the type of an item's bits x; whether it is a float; the kind that sums it, in its own or
   greater width; its value; the bits of a float64 y rounded to it; and the name of the type if it is not NumPy's own.
   The order of integers matters. To add a float that is summed in float64, add a row with kind f64 before FLOAT64. */
#define BCAST_DTYPES(ROW)                                                                   \
    ROW(BOOL, uint8_t, 0, u64, (x + 255) >> 8, 0, NULL) /* x != 0, without a branch in GCC */ \
    ROW(INT8, uint8_t, 0, u64, (int8_t) x, 0, NULL)                                         \
    ROW(INT16, uint16_t, 0, u64, (int16_t) x, 0, NULL)                                      \
    ROW(INT32, uint32_t, 0, u32, (int32_t) x, 0, NULL)                                      \
    ROW(INT64, uint64_t, 0, u64, (int64_t) x, 0, NULL)                                      \
    ROW(UINT8, uint8_t, 0, u64, x, 0, NULL)                                                 \
    ROW(UINT16, uint16_t, 0, u64, x, 0, NULL)                                               \
    ROW(UINT32, uint32_t, 0, u32, x, 0, NULL)                                               \
    ROW(UINT64, uint64_t, 0, u64, x, 0, NULL)                                               \
    ROW(FLOAT16, uint16_t, 1, f16, bcast_f16_of(x), bcast_f16_bits_of(y), NULL)            \
    ROW(BFLOAT16, uint16_t, 1, bf16, bcast_bf16_of(x), bcast_bf16_bits_of(y), "bfloat16")   \
    ROW(FLOAT32, uint32_t, 1, f32, bcast_f32_of(x), bcast_f32_bits_of((float) y), NULL)     \
    ROW(FLOAT64, uint64_t, 1, f64, bcast_f64_of(x), bcast_f64_bits_of(y), NULL)

#define BCAST_DTYPE_NUMBER(NAME, ...) BCAST_##NAME,
enum { BCAST_DTYPES(BCAST_DTYPE_NUMBER) BCAST_DTYPE_COUNT };

typedef struct {
    int size, is_float, kind;
    const char *name;
} bcast_dtype;

#define BCAST_DTYPE_ENTRY(NAME, Bits, is_float, kind, value, rounded, name) \
    {sizeof(Bits), is_float, BCAST_KIND_##kind, name},
static const bcast_dtype bcast_dtypes[] = {BCAST_DTYPES(BCAST_DTYPE_ENTRY)};

#endif
