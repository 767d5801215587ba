/* The kinds of terms as types: what templates over a kind ask it. The rows are those of `sum.h`. */

#ifndef BCAST_SUM_KINDS_H
#define BCAST_SUM_KINDS_H

#include "dtypes.h"
#include "sum.h"

namespace bcast {

template <class Kind> using Term = typename Kind::Term;
template <class Kind> using Sum = typename Kind::Sum;

/* What follows from a row.

   A wide vector holds what `lanes` terms are loaded as, and sums of few of them. Four accumulators are a vector, too; a
   wide vector becomes `parts` of these:

       terms           |0|1|2|3|4|5|6|7|                    float16, 8 lanes
       wide            |0 |1 |2 |3 |4 |5 |6 |7 |            float32
       accumulators    |0   |1   |2   |3   | |4   |5   |6   |7   |      float64: 2 parts */
template <class TermBits, class WideItem, class Accumulator, int lanes_of_vector, int dtype_of_terms>
struct KindOf {
    using Term = TermBits;
    using Wide = WideItem;
    using Sum = Accumulator;

    static constexpr int dtype = dtype_of_terms;
    static constexpr int lanes = lanes_of_vector;
    static constexpr int parts = lanes / 4;
    static constexpr ptrdiff_t bytes = sizeof(Term);                /* of a term */
    static constexpr ptrdiff_t vector_bytes = lanes * bytes;        /* of `lanes` terms */
    static constexpr bool is_integer = static_cast<Sum>(0.5) == 0;
};

#define BCAST_KIND(kind, Bits, Wide, Sum, lanes, is_compensated, is_converted, dtype)      \
    struct kind : KindOf<Bits, Wide, Sum, lanes, BCAST_##dtype> {                          \
        static constexpr bool compensated = is_compensated;                                \
        static constexpr bool converted = is_converted;                                    \
    };
BCAST_SUM_KINDS(BCAST_KIND)

/* Narrow integers, which are summed as they are. A vector has 32 bytes. */
#define BCAST_NARROW_KIND(kind, Bits, dtype) \
    struct kind : KindOf<Bits, Bits, Bits, 32 / sizeof(Bits), BCAST_##dtype> {};
BCAST_NARROW_KINDS(BCAST_NARROW_KIND)

/* No byte of a vector of 32, then all: the mask that begins at byte `n` leaves the last `n` bytes of a vector. */
struct TailMasks {
    uint8_t bytes[64];
};

constexpr TailMasks make_tail_masks()
{
    TailMasks masks = {};
    for (int i = 32; i < 64; i++) masks.bytes[i] = 255;
    return masks;
}

constexpr TailMasks tail_masks = make_tail_masks();

}

#endif
