/* The kernels of copies: one unit, compiled once for each target in a separate namespace. It exports a table of plain
   functions (`kernels.h`, their contract).

   Kernels are templates over the size of an item and the number of vectors or columns: with constants, loops unroll,
   and copies of an item are a move or two. They use the vocabulary of `_runtime/vectors.h`.

   This file lists the targets. A target in the second column of `_runtime/cpu.h` needs a block; its row says which
   CPUs have it. Nothing of the C++ library is linked, and no function raises. */

#include "kernels.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "items.h"
#include "../../_runtime/cpu.h"
#include "../../_runtime/target.h"
#include "../../_runtime/vectors.h"

namespace bcast {
namespace {

/* For each size of items, the indices that fill a vector with the first item of its window. */
struct FillNumbers { uint8_t of[BCAST_WINDOW_BYTES + 1][BCAST_VECTOR_BYTES]; };

constexpr FillNumbers fill_numbers_of_sizes()
{
    FillNumbers numbers = {};
    for (int size = 1; size <= BCAST_WINDOW_BYTES; size++)
        for (int i = 0; i < BCAST_VECTOR_BYTES; i++) numbers.of[size][i] = static_cast<uint8_t>(i % size);
    return numbers;
}

constexpr FillNumbers fill_numbers = fill_numbers_of_sizes();

/* ---- The targets. Each chooses the kernels for items shorter than its vectors, and for a matrix of a few
   channels ---- */

namespace plain {
constexpr const bcast_copy_kernels *narrower = nullptr;
#include "shuffle.inc.h"
#include "repeat.inc.h"

constexpr bcast_copy_kernels kernels = {
    static_cast<int>(vector_bytes), execute, fill, repeat_rows, repeat_counted, copy_to_many, tile, copy_items,
};
}

#if defined(__x86_64__) || defined(_M_X64)
BCAST_BEGIN_TARGET(BCAST_SSSE3)
namespace ssse3 {
constexpr const bcast_copy_kernels *narrower = nullptr;
using Channels = ChannelLoops;
#include "shuffle.inc.h"
#include "repeat.inc.h"
#include "transpose.inc.h"

constexpr bcast_copy_kernels kernels = {
    static_cast<int>(vector_bytes), execute, fill, repeat_rows, repeat_counted, copy_to_many, tile, copy_matrix,
};
}
BCAST_END_TARGET

BCAST_BEGIN_TARGET(BCAST_AVX2)
namespace avx2 {
constexpr const bcast_copy_kernels *narrower = &ssse3::kernels;
#include "shuffle.inc.h"
#include "repeat.inc.h"
#include "three_channels.inc.h"
using Channels = ThreeChannels;
#include "transpose.inc.h"

constexpr bcast_copy_kernels kernels = {
    static_cast<int>(vector_bytes), execute, fill, repeat_rows, repeat_counted, copy_to_many, tile, copy_matrix,
};
}
BCAST_END_TARGET

#elif defined(__aarch64__) || defined(_M_ARM64)
namespace neon {
constexpr const bcast_copy_kernels *narrower = nullptr;
using Channels = ChannelLoops;
#include "shuffle.inc.h"
#include "repeat.inc.h"
#include "transpose.inc.h"

constexpr bcast_copy_kernels kernels = {
    static_cast<int>(vector_bytes), execute, fill, repeat_rows, repeat_counted, copy_to_many, tile, copy_matrix,
};
}
#endif

}
}

#define BCAST_KERNELS_OF(name, target, ...) bcast::target::kernels,
const bcast_copy_kernels bcast_copy_kernels_of[] = {BCAST_TARGETS(BCAST_KERNELS_OF)};
