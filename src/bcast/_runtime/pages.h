/* Pages from the operating system, and a lock that is only ever tried. Where pages cannot be lent to the system, as on
   Windows, PAGES is 0 and the functions do nothing.

   A block is a page with its header and, at a multiple of HUGE_PAGE behind it, the data. */

#ifndef BCAST_PAGES_H
#define BCAST_PAGES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__linux__) || defined(__APPLE__)
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#endif

#define HUGE_PAGE ((size_t) 2 << 20)

#if defined(MADV_FREE) && defined(MAP_ANONYMOUS)

#define PAGES 1

static size_t pages_size(void)
{
    return (size_t) sysconf(_SC_PAGESIZE);
}

/* Seconds, to some milliseconds: a clock that costs next to nothing. */
static double pages_clock(void)
{
    struct timespec now;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
#else
    clock_gettime(CLOCK_MONOTONIC, &now);
#endif
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Blocks cannot merge into fewer mappings, and Linux gives a process 65530 of those: a quarter is ours. */
#define MAX_BLOCKS 16384

static int pages_blocks;

/* Map a page of `page` bytes and `capacity` bytes behind it. Returns where the latter begin, or NULL. */
static char *pages_map(size_t page, size_t capacity, int huge)
{
    size_t length = page + capacity;
    char *start, *data, *end;
    if (__atomic_load_n(&pages_blocks, __ATOMIC_RELAXED) >= MAX_BLOCKS)
        return NULL;
    start = (char *) mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == (char *) MAP_FAILED)
        return NULL;
    __atomic_add_fetch(&pages_blocks, 1, __ATOMIC_RELAXED);
    end = start + length + HUGE_PAGE;
    data = (char *) (((uintptr_t) start + page + HUGE_PAGE - 1) & ~(uintptr_t) (HUGE_PAGE - 1));
    if (data - page > start)
        munmap(start, (size_t) (data - page - start));
    if (end > data + capacity)
        munmap(data + capacity, (size_t) (end - data) - capacity);
#ifdef MADV_HUGEPAGE
    if (huge)
        madvise(data - page, length, MADV_HUGEPAGE); /* all of it, as advice for a part would split the mapping */
#else
    (void) huge;
#endif
    return data;
}

/* Let another thread go on for a moment. */
static void pages_nap(void)
{
    struct timespec moment = {0, 100000};
    nanosleep(&moment, NULL);
}

/* Unmap a block. */
static void pages_unmap(char *start, size_t length)
{
    if (munmap(start, length) == 0)
        __atomic_sub_fetch(&pages_blocks, 1, __ATOMIC_RELAXED);
}

/* Unmap the end of a block. */
static int pages_trim(char *start, size_t length)
{
    return munmap(start, length) == 0;
}

/* Let the system take the pages when it needs memory; until then, and from the next write on, they stay. */
static int pages_lend(char *data, size_t capacity)
{
    return madvise(data, capacity, MADV_FREE) == 0;
}

static char pages_taken;

static int pages_try_lock(void)
{
    return !__atomic_test_and_set(&pages_taken, __ATOMIC_ACQUIRE);
}

static void pages_unlock(void)
{
    __atomic_clear(&pages_taken, __ATOMIC_RELEASE);
}

#else

#define PAGES 0

static size_t pages_size(void)
{
    return 1;
}

static double pages_clock(void)
{
    return 0;
}

static void pages_nap(void)
{
}

static char *pages_map(size_t page, size_t capacity, int huge)
{
    (void) page, (void) capacity, (void) huge;
    return NULL;
}

static void pages_unmap(char *start, size_t length)
{
    (void) start, (void) length;
}

static int pages_trim(char *start, size_t length)
{
    (void) start, (void) length;
    return 0;
}

static int pages_lend(char *data, size_t capacity)
{
    (void) data, (void) capacity;
    return 0;
}

static int pages_try_lock(void)
{
    return 1;
}

static void pages_unlock(void)
{
}

#endif
#endif
