/* The targets: instruction sets for which kernels are compiled, and whether this machine has them. */

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
#define BCAST_HAS_SSSE3 IsProcessorFeaturePresent(PF_SSSE3_INSTRUCTIONS_AVAILABLE)
#define BCAST_HAS_AVX2 IsProcessorFeaturePresent(PF_AVX2_INSTRUCTIONS_AVAILABLE)
#define BCAST_HAS_AVX512 0      /* it reports fewer features than are used */
#elif defined(__x86_64__)
#include <cpuid.h>
#define BCAST_HAS_SSSE3 __builtin_cpu_supports("ssse3")
#define BCAST_HAS_AVX2 (__builtin_cpu_supports("avx2") && bcast_has_f16c_and_fma())
#define BCAST_HAS_AVX512 (BCAST_HAS_AVX2 && __builtin_cpu_supports("avx512bw") && \
    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#endif

/* Sizes common to CPUs, in bytes: constants of the cores that follow from these are expressed by them. */
enum {
    BCAST_LINE = 64,
    BCAST_PAGE = 4096,      /* where prefetchers stop; also about the bytes of stores on their way to the cache */
    BCAST_L1 = 32768,       /* a first-level cache, at least; and a second-level one */
    BCAST_L2 = 262144
};

/* The targets of the architecture, one row each, better ones later. A row has the name, the target whose kernels of
   copies and reductions it uses, and whether this machine has the target. All tables of kernels are generated from
   these rows. */
#if defined(__x86_64__) || defined(_M_X64)
#define BCAST_TARGETS(ROW) ROW(plain, plain, 1) ROW(ssse3, ssse3, BCAST_HAS_SSSE3) \
    ROW(avx2, avx2, BCAST_HAS_AVX2) ROW(avx512, avx2, BCAST_HAS_AVX512)
#elif defined(__aarch64__) || defined(_M_ARM64)
#define BCAST_TARGETS(ROW) ROW(plain, plain, 1) ROW(neon, neon, 1)
#else
#define BCAST_TARGETS(ROW) ROW(plain, plain, 1)
#endif

#define BCAST_TARGET_NUMBER(name, ...) BCAST_TARGET_##name,
enum { BCAST_TARGETS(BCAST_TARGET_NUMBER) BCAST_TARGET_COUNT };

#define BCAST_TARGET_NAME(name, ...) #name,
static const char *const bcast_target_names[] = {BCAST_TARGETS(BCAST_TARGET_NAME)};

#if defined(__x86_64__) && !defined(_MSC_VER)
/* With AVX2, sums convert float16 and use FMA; compilers have no name for F16C. */
static inline int bcast_has_f16c_and_fma(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && (c & bit_FMA);
}
#endif

#define BCAST_CASE_HAS(name, kernels, has) case BCAST_TARGET_##name: return has;
static inline int bcast_has(int target)
{
    switch (target) { BCAST_TARGETS(BCAST_CASE_HAS) }
    return 0;
}

#endif
