/* The steps of exact sums over a block of terms, for the integers of `exact.h`: `sum.h` is their contract, and that
   file has the bounds. `target.inc.h` includes this file for each target. */

/* The sum of all lanes of a vector. */
BCAST_INLINE double total_of_lanes(Wide vector)
{
    double lanes[wide_lanes], sum = 0;

    write<Wide>(reinterpret_cast<char *>(lanes), vector);
    for (const double lane : lanes) sum += lane;
    return sum;
}

BCAST_INLINE Wide terms_of_block(const double *terms)
{
    return factors_at<double>(reinterpret_cast<const char *>(terms));
}

BCAST_APART double sum_of_magnitudes(const double *terms)
{
    Wide sum = {}, other = {};

    for (ptrdiff_t i = 0; i < BCAST_EXACT_BLOCK; i += 2 * wide_lanes) {
        sum = sum + magnitude(terms_of_block(terms + i));
        other = other + magnitude(terms_of_block(terms + i + wide_lanes));
    }
    return total_of_lanes(sum + other);
}

/* A lane's additions to two anchors, and the magnitudes of what is left. */
struct Leading {
    Wide high;
    Wide low;
    Wide left;
};

BCAST_INLINE void take_leading_of_vector(Leading *to, double *terms)
{
    const Wide term = terms_of_block(terms), high = to->high + term, rest = term - (high - to->high);
    const Wide low = to->low + rest, last = rest - (low - to->low);

    to->high = high;
    to->low = low;
    to->left = to->left + magnitude(last);
    write<Wide>(reinterpret_cast<char *>(terms), last);
}

BCAST_APART int take_leading(double *terms, double power, double *sums)
{
    const Wide none = Wide{}, anchor = none + power * 0x1.8p3, small_anchor = none + power * 0x1.8p-42;
    Leading first = {anchor, small_anchor, none}, second = first;

    for (ptrdiff_t i = 0; i < BCAST_EXACT_BLOCK; i += 2 * wide_lanes) {
        take_leading_of_vector(&first, terms + i);
        take_leading_of_vector(&second, terms + i + wide_lanes);
    }
    sums[0] = total_of_lanes((first.high - anchor) + (second.high - anchor));
    sums[1] = total_of_lanes((first.low - small_anchor) + (second.low - small_anchor));
    return total_of_lanes(first.left + second.left) != 0;
}

BCAST_APART int multiply_block(const double *a, const double *b, double *products, double *errors)
{
    Wide doubt = {};

    for (ptrdiff_t i = 0; i < BCAST_EXACT_BLOCK; i += wide_lanes) {
        const SplitProduct split = split_product(terms_of_block(a + i), terms_of_block(b + i));

        write<Wide>(reinterpret_cast<char *>(products + i), split.product);
        write<Wide>(reinterpret_cast<char *>(errors + i), split.error);
        doubt = doubt + (split.error - split.error);
    }
    return !is_any(!(doubt == Wide{}));
}

constexpr bcast_block_kernels block_kernels = {sum_of_magnitudes, take_leading, multiply_block};
