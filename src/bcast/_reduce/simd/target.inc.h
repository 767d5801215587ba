/* All kernels of one target, in its namespace, and their tables. `kernels.cpp` includes this file for each target,
   after the target's own definitions:

       unrolled            whether runs of few vectors have separate loops
       SPECIALISED         how to compile functions that are specialised by constant arguments: inlined into their
                           callers, or as one function if code should be small
       conversions         of vectors: `avx2.inc.h` has all functions that a target needs */

namespace sums {

#include "scalar.inc.h"
#if BCAST_VECTORS
#include "sums.inc.h"
#include "rows.inc.h"
#include "products.inc.h"
#include "dense.inc.h"
#include "runs.inc.h"
#include "counted.inc.h"
#else
#include "without_vectors.inc.h"
#endif
#include "statistics.inc.h"
#include "narrow.inc.h"
#include "results.inc.h"

template <class Kind>
constexpr bcast_sum_kernels kernels_of()
{
    bcast_sum_kernels kernels = {};
    kernels.lanes = Kind::lanes;
    kernels.reduce_rows = sum_rows<Kind>;
    kernels.reduce_runs = sum_runs<Kind>;
    kernels.reduce_counted_runs = sum_counted_runs<Kind>;
    kernels.combine = add_accumulators<Kind>;
    kernels.fold = fold<Kind>;
    kernels.multiply = multiply<Kind>;
    kernels.deviate = deviate<Kind>;
    return kernels;
}

template <class Kind>
constexpr bcast_sum_kernels narrow_kernels_of()
{
    bcast_sum_kernels kernels = {};
    kernels.lanes = Kind::lanes;
    kernels.reduce_rows = sum_narrow<Kind>;
    kernels.reduce_runs = sum_narrow_runs<Kind>;
    kernels.combine = add_narrow_accumulators<Kind>;
    kernels.fold = fold_narrow<Kind>;
    return kernels;
}

constexpr bcast_sum_target target_of_sums()
{
    bcast_sum_target target = {};
    BCAST_NARROW_KINDS(BCAST_SET_NARROW_KERNELS)
    BCAST_SUM_KINDS(BCAST_SET_KERNELS)
    target.store = store_results;
    target.add_errors = add_errors;
    target.divide = divide;
    target.settle = settle;
    target.settle_spreads = settle_spreads;
    return target;
}

constexpr bcast_sum_target target = target_of_sums();

}

namespace short_vectors {

#include "short_vectors.inc.h"

}

namespace combine {

#include "operations.inc.h"
#include "keys.inc.h"
#include "combine_rows.inc.h"
#include "product_runs.inc.h"
#include "combine_runs.inc.h"
#include "scaled.inc.h"
#include "exact_products.inc.h"
#include "exact_blocks.inc.h"
#include "exact_sums.inc.h"
#include "unrounded.inc.h"
#include "positions.inc.h"

template <class Operation>
constexpr bcast_sum_kernels kernels_of()
{
    bcast_sum_kernels kernels = {};
    kernels.lanes = static_cast<int>(32 / item_bytes<Operation>);
    kernels.is_idempotent = Operation::is_idempotent;
    kernels.reduce_rows = combine_rows<Operation>;
    kernels.reduce_runs = combine_runs<Operation>;
    kernels.combine = combine_accumulators<Operation>;
    kernels.fold = fold<Operation>;
    return kernels;
}

/* The kernels of an operation for each dtype; `combine.h` has the list of operations. */
template <class Operations>
constexpr bcast_sum_kernels kernels_by_dtype[] = {BCAST_DTYPES(BCAST_KERNELS_OF_OPERATION)};

constexpr const bcast_sum_kernels *kernels_by_operation[] = {BCAST_OPERATIONS(BCAST_KERNELS_BY_DTYPE)};

}
