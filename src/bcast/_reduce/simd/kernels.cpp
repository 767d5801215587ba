/* The kernels of reductions: one translation unit, which includes its kernels once for each target, in one namespace
   each, and exports tables of plain functions (`kernels.h`).

   `sum.h` is the contract of sums, `combine.h` that of other operations, `positions.h` that of argmax and argmin.
   Kernels are templates over a kind of terms (`kinds.h`), an operation (`operations.inc.h`) or a dtype, and use the
   vectors of a target (`_runtime/vectors.h`).

   This file has the list of targets. Each target in the second column of `_runtime/cpu.h` needs a block here: the
   compiler's options, and conversions, which may be those of another target. Its row there names the CPUs that have it.
   Nothing of the C++ library is linked, and no function raises. */

#include "kernels.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dtypes.h"
#include "kinds.h"
#include "packing.h"
#include "short_vectors.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"
#include "../../_runtime/tuning.h"
#include "../../_runtime/vectors.h"

/* Compiler options for a part of this file: small code, or loops that are unrolled four times. */
#ifdef __clang__
#define BEGIN_SMALL
#define END_SMALL
#define BCAST_UNROLL BCAST_PRAGMA(clang loop unroll(full))
#define BCAST_NOT_UNROLLED BCAST_PRAGMA(clang loop unroll(disable))
#elif defined(__GNUC__)
#define BEGIN_SMALL BCAST_PRAGMA(GCC push_options) BCAST_PRAGMA(GCC optimize("O1"))
#define END_SMALL BCAST_PRAGMA(GCC pop_options)
#define BCAST_UNROLL BCAST_PRAGMA(GCC unroll 4)
#define BCAST_NOT_UNROLLED BCAST_PRAGMA(GCC unroll 1)
#endif

/* A lambda that is inlined into the loops that call it; a loop whose iterations are independent. */
#ifdef __GNUC__
#define BCAST_LAMBDA_INLINE __attribute__((always_inline))
#else
#define BCAST_LAMBDA_INLINE
#endif
#if defined(__clang__)
#define BCAST_INDEPENDENT_ITEMS BCAST_PRAGMA(clang loop vectorize(assume_safety))
#elif defined(__GNUC__)
#define BCAST_INDEPENDENT_ITEMS BCAST_PRAGMA(GCC ivdep)
#else
#define BCAST_INDEPENDENT_ITEMS
#endif

/* A row of each table, for the lists of dtypes and kinds. */
#define BCAST_CASE_STORE(NAME, ...) case BCAST_##NAME: store_as<BCAST_##NAME, BCAST_UINT64>(results, sums, n); break;
#define BCAST_BITS_OF(NAME, Bits, is_float, ...)                                                                    \
    template <> struct BitsOf<BCAST_##NAME> {                                                                       \
        using Type = Bits;                                                                                          \
        static constexpr Bits without_sign = static_cast<Bits>(static_cast<Bits>(-1) >> is_float);                  \
    };
#define BCAST_KERNELS_BY_DTYPE(name, ...) __VA_ARGS__,
#define BCAST_KERNELS_OF_OPERATION(NAME, ...) kernels_of<typename Operations::template Of<BCAST_##NAME>>(),
#define BCAST_SCALED_KERNELS(NAME, ...) scaled_kernels_of<BCAST_##NAME>(),
#define BCAST_EXACT_KERNELS(NAME, ...) exact_kernels_of<BCAST_##NAME>(),
#define BCAST_POSITION_KERNELS(NAME, ...) position_kernels_of<BCAST_##NAME>(),
#define BCAST_SET_KERNELS(kind, ...) target.kernels[BCAST_KIND_##kind] = kernels_of<kind>();
#define BCAST_SET_NARROW_KERNELS(kind, ...) target.kernels[BCAST_KIND_##kind] = narrow_kernels_of<kind>();

namespace bcast {
namespace {

/* The kernels of short vectors of one target: by operation, kind, length of vectors, and length of results. */
struct KernelsOfLengths { bcast_short_kernel of[BCAST_SHORT_MOST + 1][BCAST_SHORT_MOST + 1]; };
struct KernelsOfKinds { KernelsOfLengths of[BCAST_SHORT_KINDS]; };
struct ShortKernels { KernelsOfKinds of[BCAST_SHORT_OPERATIONS]; };

#if BCAST_VECTORS && BCAST_TELLS_ERRORS
/* Found when the library is loaded, by instructions that each CPU has: so it belongs to no target. */
const bool roundings_set_flag = do_roundings_set_flag();
#endif

/* ---- The targets ---- */

#if BCAST_VECTORS && (defined(__x86_64__) || defined(__aarch64__))
/* All CPUs since 2013 have a better target, so this one is small code, which compiles in a sixth of the time. */
BEGIN_SMALL
namespace plain {
#define SPECIALISED BCAST_APART
constexpr bool unrolled = false;
#include "plain.inc.h"
#include "target.inc.h"
#undef SPECIALISED
}
END_SMALL
#elif BCAST_VECTORS
namespace plain {
#define SPECIALISED BCAST_INLINE
constexpr bool unrolled = true;
#include "plain.inc.h"
#include "target.inc.h"
#undef SPECIALISED
}
#else
namespace plain {
constexpr bool unrolled = false;
#include "plain.inc.h"
#include "target.inc.h"
}
#endif

#if BCAST_VECTORS && defined(__x86_64__)
BCAST_BEGIN_TARGET(BCAST_AVX2_FMA)
namespace avx2 {
#define SPECIALISED BCAST_INLINE
constexpr bool unrolled = true;
#include "avx2.inc.h"
#include "target.inc.h"
#undef SPECIALISED
}
BCAST_END_TARGET
#else
namespace avx2 { using namespace plain; }
#endif

#if BCAST_VECTORS && defined(__aarch64__)
namespace neon {        /* every CPU has NEON, so the compiler needs no option */
#define SPECIALISED BCAST_INLINE
constexpr bool unrolled = true;
#include "neon.inc.h"
#include "target.inc.h"
#undef SPECIALISED
}
#else
namespace neon { using namespace plain; }
#endif

/* Reductions do not need the instructions of SSSE3. */
namespace ssse3 { using namespace plain; }

/* ---- Their tables ---- */

#define BCAST_SUMS_OF(name, kernels, ...) &kernels::sums::target,
#define BCAST_POSITIONS_OF(name, kernels, ...) kernels::combine::position_kernels,
#define BCAST_BLOCKS_OF(name, kernels, ...) &kernels::combine::block_kernels,
#define BCAST_OPERATIONS_OF_TARGET(name, kernels, ...) kernels::combine::kernels_by_operation,
constexpr const bcast_sum_target *sum_targets[] = {BCAST_TARGETS(BCAST_SUMS_OF)};
constexpr const bcast_sum_kernels *const *operation_targets[] = {BCAST_TARGETS(BCAST_OPERATIONS_OF_TARGET)};
constexpr const bcast_position_kernels *position_targets[] = {BCAST_TARGETS(BCAST_POSITIONS_OF)};
constexpr const bcast_block_kernels *block_targets[] = {BCAST_TARGETS(BCAST_BLOCKS_OF)};
#define BCAST_SHORT_OF(name, kernels, ...) &kernels::short_vectors::table,
constexpr const ShortKernels *short_targets[] = {BCAST_TARGETS(BCAST_SHORT_OF)};

}
}

extern "C" const bcast_sum_target *bcast_sum_target_of(int target)
{
    return bcast::sum_targets[target];
}

extern "C" const bcast_block_kernels *bcast_block_kernels_of(int target)
{
    return bcast::block_targets[target];
}

extern "C" const bcast_sum_kernels *bcast_operation_kernels(int target, int operation, int dtype)
{
    return &bcast::operation_targets[target][operation][dtype];
}

extern "C" const bcast_position_kernels *bcast_position_kernels_of(int target, int dtype)
{
    return &bcast::position_targets[target][dtype];
}

extern "C" bcast_short_kernel bcast_short_kernel_of(int target, int operation, int kind, int length, int rows)
{
    return bcast::short_targets[target]->of[operation].of[kind].of[length][rows];
}

extern "C" BCAST_ALIGNED void bcast_pack(
    int dtype, int as_real, char *dst, const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    bcast::pack(dtype, as_real != 0, dst, src, stride, n);
}
