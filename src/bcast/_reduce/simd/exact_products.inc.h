/* Products with their rounding errors, for exact sums: `product` + `error` is the exact product of two float64. Both
   are terms of a sum. The distance from a product to its error is the size of a block of packed terms.

   Float64 may not represent the error of a tiny product. The error is then NaN, so that the sum is computed again, as
   an integer (`exact_products.h`). This also happens if a product overflows: its error is infinite or NaN. */

BCAST_INLINE double magnitude(double x) { return fabs(x); }

#if BCAST_VECTORS
BCAST_INLINE Wide magnitude(Wide x) { return wide_of(bits_of(x) & all_but_sign); }
#endif

struct SplitProduct {
    Wide product;
    Wide error;
};

BCAST_INLINE SplitProduct split_product(Wide a, Wide b)
{
    const Wide product = a * b, none = Wide{};
    const auto is_tiny = (magnitude(product) < none + 0x1p-960) & !((a == none) | (b == none));

    return {product, is_tiny ? none + static_cast<double>(NAN) : product_error(a, b, product)};
}

/* The products of contiguous rows of two arrays. They may overwrite both operands. */
BCAST_APART void multiply_exactly(const bcast_term_products *rows, void *products)
{
    constexpr ptrdiff_t to_error = 8 * BCAST_PACKED_TERMS, size = 8 * wide_lanes;
    const ptrdiff_t width = 8 * rows->width;
    const char *a = rows->a, *b = rows->b;
    char *dst = static_cast<char *>(products);

    for (ptrdiff_t i = rows->count; i > 0; i--, a += rows->a_advance, b += rows->b_advance, dst += width) {
        ptrdiff_t at = 0;
        for (; at + size <= width; at += size) {
            const SplitProduct split = split_product(factors_at<double>(a + at), factors_at<double>(b + at));
            write<Wide>(dst + at, split.product);
            write<Wide>(dst + at + to_error, split.error);
        }
        if (at < width) {
            char some[size] = {}, others[size] = {};
            memcpy(some, a + at, static_cast<size_t>(width - at));
            memcpy(others, b + at, static_cast<size_t>(width - at));
            const SplitProduct split = split_product(factors_at<double>(some), factors_at<double>(others));
            write<Wide>(some, split.product);
            write<Wide>(others, split.error);
            memcpy(dst + at, some, static_cast<size_t>(width - at));
            memcpy(dst + at + to_error, others, static_cast<size_t>(width - at));
        }
    }
}
