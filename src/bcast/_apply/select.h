/* `where`: an item of one operand or of the other, by a bool for each; items of any size. */

#ifndef BCAST_SELECT_H
#define BCAST_SELECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"

typedef int (*bcast_loop)(void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *size);

/* Items side by side; `one_x`, `one_y` where an operand has one item for all. Masks instead of branches. */
#define BCAST_SELECT_ROW(T)                                                                                         \
    BCAST_INLINE void bcast_select_row_##T(                                                                         \
        ptrdiff_t n, const uint8_t *c, const T *x, const T *y, T *out, const int one_x, const int one_y)   \
    {                                                                                                               \
        for (ptrdiff_t i = 0; i < n; i++) {                                                                         \
            const T mask = (T) -(T) (c[i] != 0);                                                           \
            out[i] = (T) ((x[one_x ? 0 : i] & mask) | (y[one_y ? 0 : i] & (T) ~mask));                              \
        }                                                                                                           \
    }
BCAST_SELECT_ROW(uint8_t)
BCAST_SELECT_ROW(uint16_t)
BCAST_SELECT_ROW(uint32_t)
BCAST_SELECT_ROW(uint64_t)

BCAST_INLINE void bcast_select_items(
    ptrdiff_t size, ptrdiff_t n, char *const *data, const ptrdiff_t *steps)
{
    const char *c = data[0], *x = data[1], *y = data[2];
    char *out = data[3];
    for (; n > 0; n--, c += steps[0], x += steps[1], y += steps[2], out += steps[3]) memmove(out, *c ? x : y, size);
}

/* One value that is known before the loop is not one of the output's, whatever overlaps. */
#define BCAST_SELECT(TARGET, ON, T)                                                                                 \
    ON static int bcast_select_##T##_##TARGET(                                                                      \
        void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *size)                \
    {                                                                                                               \
        const ptrdiff_t n = dims[0], item = sizeof(T);                                                              \
        const uint8_t *c = (const uint8_t *) data[0];                                                               \
        const T *x = (const T *) data[1], *y = (const T *) data[2];                                                 \
        T *out = (T *) data[3];                                                                                     \
        (void) context, (void) size;                                                                                \
        if (steps[0] != 1 || steps[3] != item) bcast_select_items(item, n, data, steps);                            \
        else if (steps[1] == item && steps[2] == item) bcast_select_row_##T(n, c, x, y, out, 0, 0);                 \
        else if (steps[1] == 0 && steps[2] == item) bcast_select_row_##T(n, c, x, y, out, 1, 0);                    \
        else if (steps[1] == item && steps[2] == 0) bcast_select_row_##T(n, c, x, y, out, 0, 1);                    \
        else if (steps[1] == 0 && steps[2] == 0) bcast_select_row_##T(n, c, x, y, out, 1, 1);                       \
        else bcast_select_items(item, n, data, steps);                                                              \
        return 0;                                                                                                   \
    }
#define BCAST_SELECTS(TARGET, ON)                                                                                   \
    BCAST_SELECT(TARGET, ON, uint8_t) BCAST_SELECT(TARGET, ON, uint16_t)                                            \
    BCAST_SELECT(TARGET, ON, uint32_t) BCAST_SELECT(TARGET, ON, uint64_t)
#define BCAST_BASELINE
BCAST_SELECTS(plain, BCAST_BASELINE)
#if defined(__x86_64__) || defined(_M_X64)
BCAST_SELECTS(avx2, BCAST_TARGET("avx2"))
#endif

static int bcast_select_any(
    void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *size)
{
    (void) context;
    if ((ptrdiff_t) size == 16) bcast_select_items(16, dims[0], data, steps);
    else bcast_select_items((ptrdiff_t) size, dims[0], data, steps);
    return 0;
}

/* The loop for items of a size, which it gets as its last argument, too. */
static inline bcast_loop bcast_select_of(int target, ptrdiff_t size)
{
#if defined(__x86_64__) || defined(_M_X64)
    if (target >= BCAST_TARGET_avx2) {
        switch (size) {
        case 1: return bcast_select_uint8_t_avx2;
        case 2: return bcast_select_uint16_t_avx2;
        case 4: return bcast_select_uint32_t_avx2;
        case 8: return bcast_select_uint64_t_avx2;
        }
    }
#endif
    (void) target;
    switch (size) {
    case 1: return bcast_select_uint8_t_plain;
    case 2: return bcast_select_uint16_t_plain;
    case 4: return bcast_select_uint32_t_plain;
    case 8: return bcast_select_uint64_t_plain;
    }
    return bcast_select_any;
}

#endif
