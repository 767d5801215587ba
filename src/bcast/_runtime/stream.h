/* Writing past the caches, and when that pays. */

#ifndef BCAST_STREAM_H
#define BCAST_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#endif

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

/* Copy past the caches, by whole lines, if there are such stores. */
static inline void bcast_stream(uint8_t *dst, const uint8_t *src, size_t size)
{
#if defined(__x86_64__) || defined(_M_X64)
    size_t head = -(uintptr_t) dst & 63;

    if (size >= 4 * 64) {
        memcpy(dst, src, head);
        for (dst += head, src += head, size -= head; size >= 64; dst += 64, src += 64, size -= 64) {
            __m128i part[4];
            for (int k = 0; k < 4; k++) part[k] = _mm_loadu_si128((const __m128i *) (src + 16 * k));
            for (int k = 0; k < 4; k++) _mm_stream_si128((__m128i *) (dst + 16 * k), part[k]);
        }
    }
#endif
    memcpy(dst, src, size);
}

/* Order these stores before all later ones. */
static inline void bcast_store_fence(void)
{
#if defined(__x86_64__) || defined(_M_X64)
    _mm_sfence();
#endif
}

/* Whether streaming can help: not without such stores, and not if the system has yet to map the pages of the memory.
   It clears them, and then they are in the cache. Only on Linux, the system is asked about three pages: usually all or
   none have been touched. */
static inline int bcast_pages_resident(const uint8_t *dst, size_t size)
{
#if !(defined(__x86_64__) || defined(_M_X64))
    (void) dst, (void) size;
    return 0;
#elif defined(__linux__)
    uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
    const size_t at[3] = {0, size / 2, size - 1};

    for (int i = 0; i < 3; i++) {
        unsigned char resident = 1;
        mincore((void *) (((uintptr_t) dst + at[i]) & ~(page - 1)), 1, &resident);
        if (!(resident & 1)) return 0;
    }
    return 1;
#else
    return 1;
#endif
}

#endif
