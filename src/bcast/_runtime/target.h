/* How functions are named and compiled for a target, or inlined into others. */

#ifndef BCAST_TARGET_H
#define BCAST_TARGET_H

#ifdef _MSC_VER
#define BCAST_TARGET(names)
#define BCAST_INLINE static __forceinline
#define BCAST_APART static __declspec(noinline)
#define BCAST_ALIGNED
#define BCAST_RESTRICT __restrict
#else
#define BCAST_RESTRICT __restrict__
#define BCAST_ALIGNED __attribute__((aligned(64)))      /* loops that are a tenth slower at other addresses */
#ifdef __aarch64__      /* NEON is always there, and some compilers have no name for it */
#define BCAST_TARGET(names)
#else
#define BCAST_TARGET(names) __attribute__((target(names)))
#endif
#define BCAST_INLINE static inline __attribute__((always_inline))
#define BCAST_APART static __attribute__((noinline))
#endif

/* Each target's options: the compilers' names of its instructions, and an attribute for one function. */
#define BCAST_SSSE3 "ssse3"
#define BCAST_AVX2 "avx2,f16c"
#define BCAST_AVX2_FMA "avx2,f16c,fma"
#define BCAST_AVX512 "avx512f,avx512bw,avx512dq,avx512vl"
#define BCAST_ON_AVX2 BCAST_TARGET(BCAST_AVX2)
#define BCAST_ON_AVX512 BCAST_TARGET(BCAST_AVX512)

/* A part of a file that is compiled for an instruction set. */
#define BCAST_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define BCAST_BEGIN_TARGET(names) \
    BCAST_PRAGMA(clang attribute push(__attribute__((target(names))), apply_to = function))
#define BCAST_END_TARGET BCAST_PRAGMA(clang attribute pop)
#elif defined(__GNUC__)
#define BCAST_BEGIN_TARGET(names) BCAST_PRAGMA(GCC push_options) BCAST_PRAGMA(GCC target(names))
#define BCAST_END_TARGET BCAST_PRAGMA(GCC pop_options)
#else       /* MSVC needs nothing of the kind */
#define BCAST_BEGIN_TARGET(names)
#define BCAST_END_TARGET
#endif

#endif
