/* `where`: an item of one operand or of the other, by a bool for each; items of any size. */

#ifndef BCAST_SELECT_H
#define BCAST_SELECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"

BCAST_INLINE void bcast_select_items(ptrdiff_t size, ptrdiff_t n, char *const *data, const ptrdiff_t *steps)
{
    const char *c = data[0], *x = data[1], *y = data[2];
    char *out = data[3];
    for (; n > 0; n--, c += steps[0], x += steps[1], y += steps[2], out += steps[3]) memmove(out, *c ? x : y, size);
}

/* Items side by side; `one_x`, `one_y` where an operand has one item for all. Masks instead of branches. One value that
   is known before the loop is not one of the output's, whatever overlaps. */
#define BCAST_SELECT_OF(T)                                                                                          \
    BCAST_INLINE void bcast_select_row_##T(                                                                         \
        ptrdiff_t n, const uint8_t *c, const T *x, const T *y, T *out, const int one_x, const int one_y)            \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            const T mask = (T) -(T) (c[i] != 0);                                                                    \
            out[i] = (T) ((x[one_x ? 0 : i] & mask) | (y[one_y ? 0 : i] & (T) ~mask));                              \
        }                                                                                                           \
    }                                                                                                               \
    BCAST_INLINE void bcast_select_##T(ptrdiff_t n, char *const *data, const ptrdiff_t *steps)                      \
    {                                                                                                               \
        const ptrdiff_t size = sizeof(T), x_step = steps[1], y_step = steps[2];                                     \
        const uint8_t *c = (const uint8_t *) data[0];                                                               \
        const T *x = (const T *) data[1], *y = (const T *) data[2];                                                 \
        T *out = (T *) data[3];                                                                                     \
        if (steps[0] != 1 || steps[3] != size || (x_step && x_step != size) || (y_step && y_step != size))          \
            bcast_select_items(size, n, data, steps);                                                               \
        else if (x_step && y_step) bcast_select_row_##T(n, c, x, y, out, 0, 0);                                     \
        else if (y_step) bcast_select_row_##T(n, c, x, y, out, 1, 0);                                               \
        else bcast_select_row_##T(n, c, x, y, out, !x_step, 1);                                                     \
    }
BCAST_SELECT_OF(uint8_t)
BCAST_SELECT_OF(uint16_t)
BCAST_SELECT_OF(uint32_t)
BCAST_SELECT_OF(uint64_t)

/* A loop as NumPy's, which gets the bytes of an item as its last argument. */
#define BCAST_SELECT(TARGET, ON)                                                                                    \
    ON static int bcast_select_##TARGET(                                                                            \
        void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *size)                \
    {                                                                                                               \
        (void) context;                                                                                             \
        switch ((ptrdiff_t) size) {                                                                                 \
        case 1: bcast_select_uint8_t(dims[0], data, steps); break;                                                  \
        case 2: bcast_select_uint16_t(dims[0], data, steps); break;                                                 \
        case 4: bcast_select_uint32_t(dims[0], data, steps); break;                                                 \
        case 8: bcast_select_uint64_t(dims[0], data, steps); break;                                                 \
        case 16: bcast_select_items(16, dims[0], data, steps); break;                                               \
        default: bcast_select_items((ptrdiff_t) size, dims[0], data, steps);                                        \
        }                                                                                                           \
        return 0;                                                                                                   \
    }
#define BCAST_BASELINE
BCAST_SELECT(plain, BCAST_BASELINE)
#if defined(__x86_64__) || defined(_M_X64)
BCAST_SELECT(avx2, BCAST_TARGET("avx2"))
#define BCAST_SELECT_LOOP(target) ((target) >= BCAST_TARGET_avx2 ? bcast_select_avx2 : bcast_select_plain)
#else
#define BCAST_SELECT_LOOP(target) ((void) (target), bcast_select_plain)
#endif

#endif
