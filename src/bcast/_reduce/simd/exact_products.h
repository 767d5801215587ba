/* Exact sums of products of two float64, one at a time: for the results that `exact_sums.inc.h` does not settle.

   The integer of `exact.h` has room for products: its lowest bit is 2^-2227. A factor is split into a number from 1 to
   2^32 and a power of 2^32, which moves the product by whole digits. So neither the product of these numbers nor its
   rounding error leaves the range of float64. */

#ifndef BCAST_EXACT_PRODUCTS_H
#define BCAST_EXACT_PRODUCTS_H

#include "exact.h"

/* Replace factors by their products in `a`, and by the rounding errors of these in `b`: NaN if float64 may not
   represent an error. */
static inline void bcast_split_products(double *a, double *b, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double product = a[i] * b[i];
        const int is_tiny = fabs(product) < 0x1p-960 && a[i] != 0 && b[i] != 0;

        b[i] = is_tiny ? (double) NAN : fma(a[i], b[i], -product);
        a[i] = product;
    }
}

/* A finite number other than 0, divided by a power of 2^32, so that its magnitude is from 1 to 2^32. `digits` becomes
   the exponent of that power. */
static inline double bcast_exact_factor(double number, int *digits)
{
    const int is_normal = fabs(number) >= 0x1p-1022;
    const uint64_t bits = bcast_f64_bits_of(is_normal ? number : number * 0x1p64);
    const int exponent = (int) (bits >> 52 & 0x7ff) - (is_normal ? 1023 : 1023 + 64);

    *digits = (exponent + 32 * 64) / 32 - 64;       /* rounded down */
    return bcast_f64_of((bits & 0x800fffffffffffff) | (uint64_t) (1023 + exponent - 32 * *digits) << 52);
}

/* Add the products of `n` pairs of numbers. Most products and their errors stay in the range of float64. */
static inline void bcast_exact_add_products(bcast_exact *sum, const double *a, const double *b, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double whole = a[i] * b[i], size = fabs(whole);

        if (size > 0x1p-960 && size < 0x1p1000) {
            const double lost = fma(a[i], b[i], -whole);
            bcast_exact_add_number(sum, 0, bcast_f64_bits_of(whole), BCAST_EXACT_BELOW);
            if (lost != 0) bcast_exact_add_number(sum, 1, bcast_f64_bits_of(lost), BCAST_EXACT_BELOW);
        } else if (a[i] - a[i] != 0 || b[i] - b[i] != 0) {
            sum->special += a[i] * b[i];
        } else if (a[i] != 0 && b[i] != 0) {
            int digits, more;
            const double x = bcast_exact_factor(a[i], &digits), y = bcast_exact_factor(b[i], &more);
            const double product = x * y, error = fma(x, y, -product);

            bcast_exact_add_number(sum, 0, bcast_f64_bits_of(product), BCAST_EXACT_BELOW + digits + more);
            if (error != 0)
                bcast_exact_add_number(sum, 1, bcast_f64_bits_of(error), BCAST_EXACT_BELOW + digits + more);
        }
    }
}

#endif
