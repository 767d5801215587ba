/* The targets: instruction sets that leaves are compiled for, and whether this machine has them. */

#ifndef BCAST_CPU_H
#define BCAST_CPU_H

#if defined(_MSC_VER)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#ifndef PF_AVX2_INSTRUCTIONS_AVAILABLE  /* in older headers */
#define PF_SSSE3_INSTRUCTIONS_AVAILABLE 36
#define PF_AVX2_INSTRUCTIONS_AVAILABLE 40
#endif
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

/* What CPUs have in common, in bytes: the constants of the cores are made of these where they follow from them. */
enum {
    BCAST_LINE = 64,
    BCAST_PAGE = 4096,      /* with which prefetchers stop; and about what stores may be on their way to the cache */
    BCAST_L1 = 32768        /* a first-level cache, at least */
};

/* On each architecture a later one is the better one. */
enum { BCAST_PLAIN, BCAST_SSSE3, BCAST_AVX2, BCAST_NEON, BCAST_TARGET_COUNT };

static const char *const bcast_target_names[BCAST_TARGET_COUNT] = {"plain", "ssse3", "avx2", "neon"};

static inline int bcast_has(int target)
{
    switch (target) {
    case BCAST_PLAIN:
        return 1;
#if defined(_MSC_VER) && defined(_M_X64)
    case BCAST_SSSE3:
        return IsProcessorFeaturePresent(PF_SSSE3_INSTRUCTIONS_AVAILABLE);
    case BCAST_AVX2:
        return IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE);
#elif defined(__x86_64__)
    case BCAST_SSSE3:
        return __builtin_cpu_supports("ssse3");
    case BCAST_AVX2: {      /* whose leaves of sums convert float16 and fuse; compilers have no name for F16C */
        unsigned a, b, c = 0, d;
        return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && (c & bit_FMA);
    }
#elif defined(__aarch64__) || defined(_M_ARM64)
    case BCAST_NEON:
        return 1;
#endif
    }
    return 0;
}

#endif
