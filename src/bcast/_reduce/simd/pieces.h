/* What the loops around the kernels do to items: lay pieces side by side, and fetch what comes next. */

#ifndef BCAST_PIECES_H
#define BCAST_PIECES_H

#include <stddef.h>
#include <string.h>

#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"

/* Ask for bytes that are read soon. */
static inline void bcast_fetch(const char *src, ptrdiff_t nbytes)
{
#ifdef __GNUC__
    for (ptrdiff_t at = 0; at < nbytes; at += BCAST_LINE) __builtin_prefetch(src + at);
#else
    (void) src;
    (void) nbytes;
#endif
}

/* Lay pieces side by side that are `stride` bytes from each other: `count` of `size` bytes. */
BCAST_INLINE void bcast_gather_of(
    const ptrdiff_t size, char *BCAST_RESTRICT dst, const char *BCAST_RESTRICT src, ptrdiff_t stride, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) memcpy(dst + i * size, src + i * stride, size);
}

#define BCAST_CASE_GATHER(size) case size: bcast_gather_of(size, dst, src, stride, count); break;

/* The same of items: compilers make vectors of every second one. */
#define BCAST_CASE_GATHER_ITEMS(size)                                                   \
    case size:                                                                          \
        if (stride == 2 * size) bcast_gather_of(size, dst, src, 2 * size, count);       \
        else bcast_gather_of(size, dst, src, stride, count);                            \
        break;

static inline void bcast_gather(char *dst, const char *src, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t size)
{
    switch (size) {     /* a call of memcpy for few bytes takes longer than to copy them */
    BCAST_CASE_GATHER_ITEMS(1) BCAST_CASE_GATHER_ITEMS(2) BCAST_CASE_GATHER_ITEMS(4) BCAST_CASE_GATHER_ITEMS(8)
    BCAST_CASE_GATHER(12) BCAST_CASE_GATHER(16) BCAST_CASE_GATHER(24)
    BCAST_CASE_GATHER(32) BCAST_CASE_GATHER(48) BCAST_CASE_GATHER(64)
    default: bcast_gather_of(size, dst, src, stride, count);
    }
}

#endif
