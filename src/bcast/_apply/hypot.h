/* `hypot` of float32 as C libraries have it that compute in float64, where squares are exact; NumPy calls theirs item
   by item. Results for infinities and NaN are the library's own. */

#ifndef BCAST_HYPOT_H
#define BCAST_HYPOT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"

enum { BCAST_HYPOT_ITEMS = 128 };   /* that are looked at, then computed */

/* Whether some of n numbers are not finite. */
BCAST_INLINE int bcast_any_rare(ptrdiff_t n, const float *x)
{
    uint32_t rare = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        rare |= (bits & 0x7f800000) == 0x7f800000;
    }
    return rare != 0;
}

/* Items lie side by side, or one stands for all. */
#define BCAST_HYPOT(TARGET, ON)                                                                                     \
    ON static int bcast_hypot_##TARGET(                                                                             \
        void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *unused)              \
    {                                                                                                               \
        float same[2][BCAST_HYPOT_ITEMS], *out = (float *) data[2];                                                 \
        (void) context, (void) unused;                                                                              \
        for (int k = 0; k < 2; k++)                                                                                 \
            if (steps[k] == 0)                                                                                      \
                for (int i = 0; i < BCAST_HYPOT_ITEMS; i++) same[k][i] = *(const float *) data[k];                  \
        for (ptrdiff_t at = 0; at < dims[0]; at += BCAST_HYPOT_ITEMS) {                                             \
            const ptrdiff_t n = dims[0] - at < BCAST_HYPOT_ITEMS ? dims[0] - at : BCAST_HYPOT_ITEMS;                \
            const float *x = steps[0] ? (const float *) data[0] + at : same[0];                                     \
            const float *y = steps[1] ? (const float *) data[1] + at : same[1];                                     \
            if (bcast_any_rare(n, x) || bcast_any_rare(n, y))                                                       \
                for (ptrdiff_t i = 0; i < n; i++) out[at + i] = hypotf(x[i], y[i]);                                 \
            else                                                                                                    \
                for (ptrdiff_t i = 0; i < n; i++)                                                                   \
                    out[at + i] = (float) sqrt((double) x[i] * x[i] + (double) y[i] * y[i]);                        \
        }                                                                                                           \
        return 0;                                                                                                   \
    }
#define BCAST_EVERYWHERE
BCAST_HYPOT(plain, BCAST_EVERYWHERE)
#if defined(__x86_64__) || defined(_M_X64)
BCAST_HYPOT(avx2, BCAST_TARGET("avx2"))
#define BCAST_HYPOT_LOOP(target) ((target) >= BCAST_TARGET_avx2 ? bcast_hypot_avx2 : bcast_hypot_plain)
#else
#define BCAST_HYPOT_LOOP(target) ((void) (target), bcast_hypot_plain)
#endif

#endif
