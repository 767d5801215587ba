/* Loops as NumPy's: that of `where`, for items of any size, and `hypot` of float32; and arithmetic row by row. */

#ifndef BCAST_LOOPS_H
#define BCAST_LOOPS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../_runtime/cpu.h"
#include "../_runtime/target.h"

typedef int (*bcast_loop)(void *, char *const *, const ptrdiff_t *, const ptrdiff_t *, void *);

/* A function as a loop, compiled for any CPU, AVX2 and AVX-512; `bcast_NAME_loop` gives the one for a target. */
#define BCAST_LOOP_ON(name, ON, function)                                                                           \
    ON static int name(                                                                                             \
        void *context, char *const *data, const ptrdiff_t *dims, const ptrdiff_t *steps, void *auxdata)             \
    {                                                                                                               \
        (void) context;                                                                                             \
        function(dims[0], data, steps, (ptrdiff_t) auxdata);                                                        \
        return 0;                                                                                                   \
    }
#define BCAST_LOOP(name)                                                                                            \
    BCAST_LOOP_ON(bcast_##name##_plain, , bcast_##name)                                                             \
    BCAST_LOOP_ON(bcast_##name##_wide, BCAST_ON_WIDE, bcast_##name)                                                 \
    BCAST_LOOP_ON(bcast_##name##_wider, BCAST_ON_WIDER, bcast_##name)                                               \
    static inline bcast_loop bcast_##name##_loop(int target)                                                        \
    {                                                                                                               \
        return target < BCAST_WIDE ? bcast_##name##_plain :                                                         \
            target == BCAST_WIDE ? bcast_##name##_wide : bcast_##name##_wider;                                      \
    }

BCAST_INLINE void bcast_select_items(ptrdiff_t size, ptrdiff_t n, char *const *data, const ptrdiff_t *steps)
{
    const char *c = data[0], *x = data[1], *y = data[2];
    char *out = data[3];
    for (; n > 0; n--, c += steps[0], x += steps[1], y += steps[2], out += steps[3]) memmove(out, *c ? x : y, size);
}

/* Masks instead of branches. An item that stands for all is none of the output's, whatever overlaps. */
#define BCAST_SELECT_ROW(T, X, Y)                                                                                   \
    for (ptrdiff_t i = 0; i < n; i++) {                                                                             \
        const T mask = (T) -(T) (c[i] != 0);                                                                        \
        out[i] = (T) ((X & mask) | (Y & (T) ~mask));                                                                \
    }
#define BCAST_SELECT_OF(T)                                                                                          \
    case sizeof(T): {                                                                                               \
        const T *x = (const T *) data[1], *y = (const T *) data[2], one_x = *x, one_y = *y;                         \
        T *out = (T *) data[3];                                                                                     \
        if (!adjacent) bcast_select_items(sizeof(T), n, data, steps);                                               \
        else if (steps[1] && steps[2]) BCAST_SELECT_ROW(T, x[i], y[i])                                              \
        else if (steps[1]) BCAST_SELECT_ROW(T, x[i], one_y)                                                         \
        else if (steps[2]) BCAST_SELECT_ROW(T, one_x, y[i])                                                         \
        else BCAST_SELECT_ROW(T, one_x, one_y)                                                                      \
        return;                                                                                                     \
    }
BCAST_INLINE void bcast_select(ptrdiff_t n, char *const *data, const ptrdiff_t *steps, ptrdiff_t size)
{
    const char *c = data[0];
    const ptrdiff_t bytes = n * size;
    const int chosen = *c ? 1 : 2;
    if (!steps[0] && steps[3] == size && (steps[chosen] == size || !steps[chosen])) {   /* one condition for all */
        ptrdiff_t done = steps[chosen] ? bytes : size;
        memmove(data[3], data[chosen], done);
        for (; done < bytes; done *= 2) memcpy(data[3] + done, data[3], done < bytes - done ? done : bytes - done);
        return;
    }
    const int adjacent = steps[0] == 1 && (!steps[1] || steps[1] == size) && (!steps[2] || steps[2] == size) &&
        steps[3] == size;
    switch (size) {
    BCAST_SELECT_OF(uint8_t)
    BCAST_SELECT_OF(uint16_t)
    BCAST_SELECT_OF(uint32_t)
    BCAST_SELECT_OF(uint64_t)
    case 16: bcast_select_items(16, n, data, steps); return;
    default: bcast_select_items(size, n, data, steps);
    }
}
BCAST_LOOP(select)

/* As C libraries have it that compute in float64, where squares are exact; NumPy calls theirs item by item. Results for
   infinities and NaN are the library's own. Items lie side by side, or one stands for all. */
BCAST_INLINE void bcast_hypot(ptrdiff_t n, char *const *data, const ptrdiff_t *steps, ptrdiff_t unused)
{
    float same[2][128], *out = (float *) data[2];
    const ptrdiff_t most = sizeof same[0] / sizeof(float);      /* items that are looked at, then computed */
    (void) unused;
    for (int k = 0; k < 2; k++)
        for (ptrdiff_t i = 0; i < most && steps[k] == 0; i++) same[k][i] = *(const float *) data[k];
    for (ptrdiff_t at = 0; at < n; at += most) {
        const ptrdiff_t items = n - at < most ? n - at : most;
        const float *x = steps[0] ? (const float *) data[0] + at : same[0];
        const float *y = steps[1] ? (const float *) data[1] + at : same[1];
        uint32_t rare = 0, bits[2];     /* whether some numbers are not finite */
        for (ptrdiff_t i = 0; i < items; i++) {
            memcpy(bits, x + i, 4);
            memcpy(bits + 1, y + i, 4);
            rare |= ((bits[0] & 0x7f800000) == 0x7f800000) | ((bits[1] & 0x7f800000) == 0x7f800000);
        }
        if (rare)
            for (ptrdiff_t i = 0; i < items; i++) out[at + i] = hypotf(x[i], y[i]);
        else
            for (ptrdiff_t i = 0; i < items; i++)
                out[at + i] = (float) sqrt((double) x[i] * x[i] + (double) y[i] * y[i]);
    }
}
BCAST_LOOP(hypot)

/* Sums, differences, products and quotients, row by row: of rows so short that calls of NumPy's loop take longer than
   their items. An operand's items of a row lie side by side, or one stands for all; those of one operand at least lie
   side by side. Results may lie where an operand's items do, one for one. */
typedef void (*bcast_row_loop)(
    ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *steps, const ptrdiff_t *row_steps);

#if defined(__GNUC__) && defined(__x86_64__)
#define BCAST_EACH_ROW(T, X, op, Y)                                                                                 \
    for (; rows > 0; rows--, a += row_steps[0], b += row_steps[1], c += row_steps[2]) {                             \
        const T *x = (const T *) a, *y = (const T *) b, one_x = *x, one_y = *y;                                     \
        T *z = (T *) c;                                                                                             \
        (void) one_x, (void) one_y;                                                                                 \
        _Pragma("GCC ivdep") for (ptrdiff_t i = 0; i < n; i++) z[i] = X op Y;                                       \
    }
#define BCAST_ROW_LOOP(T, name, op)                                                                                 \
    BCAST_ON_WIDE static void bcast_##name##_rows_##T(                                                              \
        ptrdiff_t rows, ptrdiff_t n, char *const *data, const ptrdiff_t *steps, const ptrdiff_t *row_steps)         \
    {                                                                                                               \
        const char *a = data[0], *b = data[1];                                                                      \
        char *c = data[2];                                                                                          \
        if (!steps[0]) BCAST_EACH_ROW(T, one_x, op, y[i])                                                           \
        else if (!steps[1]) BCAST_EACH_ROW(T, x[i], op, one_y)                                                      \
        else BCAST_EACH_ROW(T, x[i], op, y[i])                                                                      \
    }
#define BCAST_ROW_LOOPS(F, T) F(T, add, +) F(T, subtract, -) F(T, multiply, *) F(T, divide, /)
#define BCAST_ROW_LOOP_NAME(T, name, op) bcast_##name##_rows_##T,
BCAST_ROW_LOOPS(BCAST_ROW_LOOP, float)
BCAST_ROW_LOOPS(BCAST_ROW_LOOP, double)
static inline bcast_row_loop bcast_row_loop_for(int target, int is_double, int function)
{
    static const bcast_row_loop loops[2][4] = {
        {BCAST_ROW_LOOPS(BCAST_ROW_LOOP_NAME, float)}, {BCAST_ROW_LOOPS(BCAST_ROW_LOOP_NAME, double)}};
    return target < BCAST_WIDE ? NULL : loops[is_double][function];
}
#else
#define bcast_row_loop_for(...) NULL
#endif

#endif
