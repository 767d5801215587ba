/* The kinds of terms as types: the properties that templates over a kind use. `sum.h` has the rows. */

#ifndef BCAST_SUM_KINDS_H
#define BCAST_SUM_KINDS_H

#include "dtypes.h"
#include "sum.h"

namespace bcast {

template <class Kind> using Term = typename Kind::Term;
template <class Kind> using Sum = typename Kind::Sum;

/* The types and numbers that follow from a row.

   Loads convert `lanes` terms to a wide vector, which also holds sums of few such vectors. A vector of accumulators has
   four of them; a wide vector becomes `parts` of these:

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
    static constexpr ptrdiff_t bytes = sizeof(Term);                /* size of a term */
    static constexpr ptrdiff_t vector_bytes = lanes * bytes;        /* size of `lanes` terms */
    static constexpr bool is_integer = static_cast<Sum>(0.5) == 0;
};

#define BCAST_KIND(kind, Bits, Wide, Sum, lanes, is_compensated, is_converted, dtype)      \
    struct kind : KindOf<Bits, Wide, Sum, lanes, BCAST_##dtype> {                          \
        static constexpr bool compensated = is_compensated;                                \
        static constexpr bool converted = is_converted;                                    \
    };
BCAST_SUM_KINDS(BCAST_KIND)

/* Narrow integers, which are summed in their own width. A vector has 32 bytes. */
#define BCAST_NARROW_KIND(kind, Bits, dtype) \
    struct kind : KindOf<Bits, Bits, Bits, 32 / sizeof(Bits), BCAST_##dtype> {};
BCAST_NARROW_KINDS(BCAST_NARROW_KIND)

/* 32 bytes of zeros, then 32 of ones: the 32 bytes from byte `n` on are a mask that keeps the last `n` bytes. */
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
