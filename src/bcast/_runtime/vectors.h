/* The vocabulary of vectors, in C++, for the kernels of all cores: the same words in a namespace for each target.

   Vector<Item, n>     n items, in one register or in several: `vectors.inc.h` has what all targets say alike of these
   Floats              `lanes` float32
   Mask                for each of them, whether something holds
   Words               as many integers of 32 bits
   Halves              as many floats of 16 bits, by their bits
   Rare                what was seen of numbers rounded to float16 that NumPy tells, and this CPU does not
   Bytes               a register of bytes, in lanes of 16; what looks bytes up stays within a lane

   A target has the types and words that its kernels ask for: `vectors_<target>.inc.h`. Here is the list of targets. A
   target's kernels are compiled for these instructions at least, in a namespace of the same name.

   `floats.h` has the same for single items. Results have its bits, and its floating-point errors, but that a NaN which
   signals is told by some CPUs. */

#ifndef BCAST_VECTORS_H
#define BCAST_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "floats.h"
#include "target.h"

#if defined(__x86_64__) || defined(_M_X64)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"     /* of vectors that are so by intent */
#endif
#include <immintrin.h>
#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#endif

namespace bcast {
namespace {

/* Comparisons, by x86's numbers for them. A quiet one tells no error of a NaN, unless it signals; of the others, NaN is
   an error to all but `equal`, `not_equal` and `ordered`. What is `not_less` and the like holds of NaN, too. */
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
namespace ssse3 {       /* which is of use to copies alone */
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
namespace neon {        /* which every CPU for arm64 has: the compiler needs no option */
constexpr int register_bytes = 16;
#include "vectors.inc.h"
#include "vectors_neon.inc.h"
}
#endif

/* The floating-point errors that were told so far, and all else that the CPU's register of them has. */
#if defined(__x86_64__) || defined(_M_X64)
constexpr uint64_t underflow_told = _MM_EXCEPT_UNDERFLOW;

BCAST_INLINE uint64_t told_errors() { return _mm_getcsr(); }
BCAST_INLINE void tell_errors(uint64_t errors) { _mm_setcsr(static_cast<unsigned>(errors)); }
#elif BCAST_HAS_FP16
constexpr uint64_t underflow_told = 0x08;

BCAST_INLINE uint64_t told_errors()
{
    uint64_t errors;
    __asm__ volatile("mrs %0, fpsr" : "=r"(errors) : : "memory");
    return errors;
}

BCAST_INLINE void tell_errors(uint64_t errors) { __asm__ volatile("msr fpsr, %0" : : "r"(errors) : "memory"); }
#endif

}
}

#endif
