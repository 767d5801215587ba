/* The dtypes of terms and results: conversions to and from summed types. */

#ifndef BCAST_SUM_DTYPES_H
#define BCAST_SUM_DTYPES_H

#include <string.h>

#include "table.h"
#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"

/* The item at `at`: a float's bits, or an integer widened to 64 bits, whose sums wrap around as narrower ones do; with
   `as_real`, the bits of its value as a float64. A constant dtype costs nothing. */
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

/* Write an item from its bits; with `from_real`, from the bits of a float64, rounded. */
#define BCAST_CASE_WRITE(NAME, Bits, is_float, kind, value, rounded, name) \
    case BCAST_##NAME: { const Bits x = (Bits) (from_real ? rounded : bits); memcpy(dst, &x, sizeof x); break; }
BCAST_INLINE void bcast_write(const int dtype, const int from_real, char *dst, uint64_t bits)
{
    const double y = bcast_f64_of(bits);
    switch (dtype) { BCAST_DTYPES(BCAST_CASE_WRITE) }
}

#endif
