/* How functions are named and compiled for a target, or into others. */

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
#define BCAST_ALIGNED __attribute__((aligned(64)))      /* functions whose loops take a tenth longer elsewhere */
#ifdef __aarch64__      /* NEON is always there, and not every compiler knows it by a name */
#define BCAST_TARGET(names)
#else
#define BCAST_TARGET(names) __attribute__((target(names)))
#endif
#define BCAST_INLINE static inline __attribute__((always_inline))
#define BCAST_APART static __attribute__((noinline))
#endif

/* What kernels and vectors of a target are compiled for. */
#define BCAST_ON_AVX2 BCAST_TARGET("avx2,f16c")
#define BCAST_ON_AVX512 BCAST_TARGET("avx512f,avx512bw,avx512dq,avx512vl")

/* bcast_a_b, of macros' values */
#define BCAST_JOINED(a, b) bcast_##a##_##b
#define BCAST_JOIN(a, b) BCAST_JOINED(a, b)

#endif
