/* Pages of mapped files that leave the process's memory. */
#ifndef BCAST_MAPPED_H
#define BCAST_MAPPED_H

#include <stddef.h>
#include <stdint.h>

#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#endif

/* Forget the pages of a range, also those that are half inside. Only a shared map gets them back as they were. */
static inline void bcast_forget(const void *begin, size_t size)
{
#if defined(_WIN32)
    (void) begin, (void) size;
#else
    uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE), first = (uintptr_t) begin & ~(page - 1);
    madvise((void *) first, (uintptr_t) begin + size - first, MADV_DONTNEED);
#endif
}

#endif
