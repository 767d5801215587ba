/* Seconds of a monotonic clock. */

#ifndef BCAST_CLOCK_H
#define BCAST_CLOCK_H

#if defined(_WIN32)
#include <windows.h>
#else
#include <time.h>
#endif

static double bcast_clock(void)
{
#if defined(_WIN32)
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (double) now.QuadPart / (double) frequency.QuadPart;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
#endif
}

#endif
