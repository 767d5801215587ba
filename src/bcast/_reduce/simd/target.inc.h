/* The kernels of one TARGET. `kernels.h` includes this file for each, and defines

       TARGET, ON_TARGET       its name, and how functions are compiled for it
       SPECIALISED             how those are of which there is one for each constant
       UNROLLED                whether runs of few vectors have loops of their own
       ONE, DOUBLES            a vector of ones; four floats as doubles

   which end here; and what a later target takes over: ROUND, and for each kind `widen`, `part` and `narrow`. */

#define KIND u8
#include "narrow.inc.h"
#define KIND u16
#include "narrow.inc.h"
#define KIND u32
#include "kind.inc.h"
#define KIND u64
#include "kind.inc.h"
#define KIND f16
#include "kind.inc.h"
#define KIND bf16
#include "kind.inc.h"
#define KIND f32
#include "kind.inc.h"
#define KIND f64
#include "kind.inc.h"

/* Integers' low bytes, or floats rounded once. */
ON_TARGET BCAST_INLINE void BCAST_JOIN(store_at, TARGET)(
    const int dtype, const int from, const ptrdiff_t stride, const ptrdiff_t sum_stride, char *dst, const char *sums,
    ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if BCAST_VECTORS
    for (; dtype == BCAST_FLOAT16 && stride == 2 && sum_stride == 8 && i + 4 <= n; i += 4) {
        const bcast_f64x4 four = BCAST_AT(const bcast_f64x4, sums, i / 4);
        BCAST_AT(bcast_u16x4, dst, i / 4) = bcast_f16_narrow(&four);
    }
#endif
    for (const int is_float = bcast_dtypes[dtype].is_float; i < n; i++)
        bcast_write(dtype, is_float, dst + i * stride, bcast_read(from, 0, sums + i * sum_stride));
}

/* Results side by side are what compilers make vectors of. */
ON_TARGET BCAST_INLINE void BCAST_JOIN(store_as, TARGET)(
    const int dtype, const int from, const bcast_results *results, const char *sums, ptrdiff_t n)
{
    const ptrdiff_t size = bcast_dtypes[dtype].size, sum_size = bcast_dtypes[from].size;
    if (results->stride == size && results->sum_stride == sum_size)
        BCAST_JOIN(store_at, TARGET)(dtype, from, size, sum_size, results->dst, sums, n);
    else
        BCAST_JOIN(store_at, TARGET)(dtype, from, results->stride, results->sum_stride, results->dst, sums, n);
}

ON_TARGET BCAST_ALIGNED static void BCAST_JOIN(store, TARGET)(
    const bcast_results *results, const void *sums, ptrdiff_t n)
{
    const int is_byte = bcast_dtypes[results->dtype].size == 1;
    if (results->sum_size == 1) BCAST_JOIN(store_as, TARGET)(BCAST_UINT8, BCAST_UINT8, results, sums, n);
    else if (results->sum_size == 2 && is_byte)
        BCAST_JOIN(store_as, TARGET)(BCAST_UINT8, BCAST_UINT16, results, sums, n);
    else if (results->sum_size == 2) BCAST_JOIN(store_as, TARGET)(BCAST_UINT16, BCAST_UINT16, results, sums, n);
    else if (results->sum_size == 4) BCAST_JOIN(store_as, TARGET)(BCAST_UINT32, BCAST_UINT32, results, sums, n);
    else switch (results->dtype) { BCAST_DTYPES(BCAST_CASE_STORE) }
}

/* sum[i] += error[i]; tells whether one of the sums is infinite or no number. */
ON_TARGET static int BCAST_JOIN(add_errors, TARGET)(double *sum, const double *error, ptrdiff_t n)
{
    uint64_t special = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum[i] += error[i];
        special |= (bcast_f64_bits_of(sum[i]) & 0x7fffffffffffffff) + 0x0010000000000000;   /* sets the sign of those */
    }
    return special >> 63 != 0;
}

ON_TARGET static void BCAST_JOIN(divide, TARGET)(double *sums, double by, int root, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) sums[i] /= by;
    for (ptrdiff_t i = 0; root && i < n; i++) sums[i] = sqrt(sums[i]);
}

static const bcast_sum_target BCAST_JOIN(target, TARGET) = {
    .kernels = {BCAST_NARROW_KINDS(BCAST_NARROW_KERNELS_OF) BCAST_SUM_KINDS(BCAST_KERNELS_OF)},
    .store = BCAST_JOIN(store, TARGET),
    .add_errors = BCAST_JOIN(add_errors, TARGET),
    .divide = BCAST_JOIN(divide, TARGET),
};

#undef TARGET
#undef ON_TARGET
#undef SPECIALISED
#undef UNROLLED
#undef ONE
#undef DOUBLES
