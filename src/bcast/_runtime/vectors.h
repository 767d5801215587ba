/* The vocabulary of vectors, in C++, for the kernels of all cores: the same words in a namespace for each target.

   Vector<Item, n>     n items, in one register or in several: `vectors.inc.h` has the part common to all targets
   Floats              `lanes` float32
   Mask                for each of them, whether a condition holds
   Words               the same number of integers of 32 bits
   Halves              the same number of floats of 16 bits, by their bits
   Rare                errors in rounding to float16 that NumPy reports, but not this CPU
   Bytes               a register of bytes, in lanes of 16; byte shuffles stay within a lane

   A target has the types and words that its kernels need: `vectors_<target>.inc.h`. This file lists the targets. A
   target's kernels are compiled at least for these instructions, in a namespace of the same name.

   `floats.h` has the same for single items. Results have its bits and its floating-point errors, except that some CPUs
   report a signalling NaN. */

#ifndef BCAST_VECTORS_H
#define BCAST_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "floats.h"
#include "target.h"

#if defined(__x86_64__) || defined(_M_X64)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"     /* some vectors are uninitialised intentionally */
#endif
#include <immintrin.h>
#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#endif

namespace bcast {
namespace {

/* Comparisons, by x86's numbers for them. A quiet one reports no error for a NaN, unless it signals; among the others,
   NaN is an error for all except `equal`, `not_equal` and `ordered`. `not_less` and the like also hold for NaN. */
enum Comparison {
    equal = 0x00,
    less = 0x01,
    less_equal = 0x02,
    not_equal = 0x04,
    not_less = 0x05,
    ordered = 0x07,
    not_greater = 0x0a,
    greater_equal = 0x0d,
    greater = 0x0e,

    quiet_less = 0x11,
    quiet_less_equal = 0x12,
    quiet_not_less = 0x15,
    quiet_not_less_equal = 0x16,
    quiet_not_greater_equal = 0x19,
    quiet_not_greater = 0x1a,
    quiet_greater_equal = 0x1d,
    quiet_greater = 0x1e
};

namespace plain {       /* any CPU */
constexpr int register_bytes = 16;
#include "vectors.inc.h"
#include "vectors_plain.inc.h"
}

#if defined(__x86_64__) || defined(_M_X64)
BCAST_BEGIN_TARGET(BCAST_SSSE3)
namespace ssse3 {       /* only useful for copies */
#include "vectors_ssse3.inc.h"
}
BCAST_END_TARGET

BCAST_BEGIN_TARGET(BCAST_AVX2)
namespace avx2 {
constexpr int register_bytes = 32;
#include "vectors.inc.h"
#include "vectors_avx2.inc.h"
#include "vectors_bfloat16.inc.h"
}
BCAST_END_TARGET
#endif

#if defined(__x86_64__) && !defined(_MSC_VER)
BCAST_BEGIN_TARGET(BCAST_AVX512)
namespace avx512 {
#include "vectors_avx512.inc.h"
#include "vectors_bfloat16.inc.h"
}
BCAST_END_TARGET
#endif

#if defined(__aarch64__) || defined(_M_ARM64)
namespace neon {        /* every CPU for arm64 has it: the compiler needs no option */
constexpr int register_bytes = 16;
#include "vectors.inc.h"
#include "vectors_neon.inc.h"
}
#endif

/* The floating-point errors so far, and the other bits of the CPU's register. */
#if defined(__x86_64__) || defined(_M_X64)
#define BCAST_TELLS_ERRORS 1
constexpr uint64_t underflow_told = _MM_EXCEPT_UNDERFLOW, inexact_told = _MM_EXCEPT_INEXACT;

BCAST_INLINE uint64_t told_errors() { return _mm_getcsr(); }
BCAST_INLINE void tell_errors(uint64_t errors) { _mm_setcsr(static_cast<unsigned>(errors)); }
#elif BCAST_HAS_FP16
#define BCAST_TELLS_ERRORS 1
constexpr uint64_t underflow_told = 0x08, inexact_told = 0x10;

BCAST_INLINE uint64_t told_errors()
{
    uint64_t errors;
    __asm__ volatile("mrs %0, fpsr" : "=r"(errors) : : "memory");
    return errors;
}

BCAST_INLINE void tell_errors(uint64_t errors) { __asm__ volatile("msr fpsr, %0" : : "r"(errors) : "memory"); }
#else
#define BCAST_TELLS_ERRORS 0
#endif

/* Keeps computations from and to memory on their side of this point. */
#ifdef __GNUC__
#define BCAST_KEEP_ORDER() __asm__ volatile("" : : : "memory")
#endif

#if BCAST_TELLS_ERRORS
/* Whether the CPU sets the flag of inexact results: some emulators do not. */
inline bool do_roundings_set_flag()
{
    const uint64_t before = told_errors();
    volatile double one = 1, tiny = 0x1p-60, sum = 0;

    tell_errors(before & ~inexact_told);
    sum = one + one;
    const uint64_t without = told_errors();
    sum = one + tiny;
    const uint64_t with = told_errors();
    tell_errors(before);
    (void) sum;
    return (without & inexact_told) == 0 && (with & inexact_told) != 0;
}
#endif

}
}

#endif
