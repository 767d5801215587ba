/* Pages from the operating system. The functions take addresses and bytes; others return whether they
   succeeded. Where the system cannot reclaim pages, as on Windows, PAGES is 0 and there are no blocks. */

#ifndef BCAST_PAGES_H
#define BCAST_PAGES_H

#include <stddef.h>
#include <stdint.h>

#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#endif

#define HUGE_PAGE ((size_t) 2 << 20)

#if defined(MADV_FREE) && defined(MAP_ANONYMOUS)

#define PAGES 1

static size_t pages_size(void)
{
    return (size_t) sysconf(_SC_PAGESIZE);
}

/* Map a page of `page` bytes and `capacity` bytes after it. Returns the address after the page, or NULL. */
static char *pages_map(size_t page, size_t capacity, int huge)
{
    const size_t length = page + capacity + HUGE_PAGE;
    char *start = (char *) mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *data;

    if (start == (char *) MAP_FAILED)
        return NULL;

    data = (char *) (((uintptr_t) start + page + HUGE_PAGE - 1) & ~(uintptr_t) (HUGE_PAGE - 1));
    munmap(start, (size_t) (data - page - start)); /* for 0 bytes, it fails harmlessly */
    munmap(data + capacity, (size_t) (start + length - data) - capacity);
#ifdef MADV_HUGEPAGE
    if (huge)
        madvise(data - page, page + capacity, MADV_HUGEPAGE); /* advice for a part would split the mapping */
#else
    (void) huge;
#endif
    return data;
}

static int pages_unmap(char *start, size_t length)
{
    return munmap(start, length) == 0;
}

/* Let the system reclaim the pages when it needs memory; until then, and from the next write on, they stay. */
static int pages_advise_free(char *start, size_t length)
{
    return madvise(start, length, MADV_FREE) == 0;
}

#else

#define PAGES 0
#define pages_size() ((size_t) 1)
#define pages_map(page, capacity, huge) ((void) (huge), (char *) NULL)
#define pages_unmap(start, length) ((void) (start), 0)
#define pages_advise_free(start, length) ((void) (start), 0)

#endif

/* Release a range of a mapped file from the process's memory, including pages partly inside: a shared map reads them
   back unchanged. */
static void pages_forget(const void *begin, size_t size)
{
#if defined(_WIN32)
    (void) begin, (void) size;
#else
    const uintptr_t first = (uintptr_t) begin & ~((uintptr_t) sysconf(_SC_PAGESIZE) - 1);
    madvise((void *) first, (uintptr_t) begin + size - first, MADV_DONTNEED);
#endif
}

#endif
