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

/* Add a product and its rounding error, times 2^(32 * digits). */
BCAST_INLINE void bcast_exact_add_split(bcast_exact *sum, double a, double b, int digits)
{
    const double product = a * b, error = fma(a, b, -product);

    bcast_exact_add_number(sum, 0, bcast_f64_bits_of(product), BCAST_EXACT_BELOW + digits);
    if (error != 0) bcast_exact_add_number(sum, 1, bcast_f64_bits_of(error), BCAST_EXACT_BELOW + digits);
}

/* Add the product of two finite numbers. Most products, and their errors, do not leave the range of float64. */
static inline void bcast_exact_add_product(bcast_exact *sum, double a, double b)
{
    const double size = fabs(a * b);

    if (size > 0x1p-960 && size < 0x1p1000) {
        bcast_exact_add_split(sum, a, b, 0);
    } else if (a != 0 && b != 0) {
        int digits, more;
        const double x = bcast_exact_factor(a, &digits), y = bcast_exact_factor(b, &more);

        bcast_exact_add_split(sum, x, y, digits + more);
    }
}

/* The exponents of numbers, as their bits have them: of finite ones other than 0. */
typedef struct {
    int least;
    int most;
    int have_special;           /* whether some are infinite or NaN */
} bcast_exponents;

static inline bcast_exponents bcast_exponents_of(const double *numbers, ptrdiff_t n)
{
    int least = 0x7ff, most = 0, have_special = 0;

    for (ptrdiff_t i = 0; i < n; i++) {
        const uint64_t bits = bcast_f64_bits_of(numbers[i]);
        const int field = (int) (bits >> 52 & 0x7ff), is_special = field == 0x7ff;
        const int low = bits << 1 == 0 || is_special ? 0x7ff : field, high = is_special ? 0 : field;
        least = low < least ? low : least;
        most = high > most ? high : most;
        have_special |= is_special;
    }
    return (bcast_exponents) {least, most, have_special};
}

/* The power of 2^32 by which numbers of an exponent are divided, to become numbers from 1 to 2^32. */
BCAST_INLINE int bcast_scale_of(int most) { return (most - 1023 + 32 * 64) / 32 - 64; }

/* Numbers divided by a power of 2^32, in two steps, as that may leave the range of float64. */
BCAST_INLINE void bcast_scale_factors(const double *numbers, double *scaled, ptrdiff_t n, int digits)
{
    const int half = digits / 2;
    const double first = bcast_f64_of((uint64_t) (1023 - 32 * half) << 52);
    const double second = bcast_f64_of((uint64_t) (1023 - 32 * (digits - half)) << 52);

    for (ptrdiff_t i = 0; i < n; i++) scaled[i] = numbers[i] * first * second;
}

enum { BCAST_SCALED_EXPONENTS = 400 };  /* between factors, so that all products and errors have a float64 */

/* Add the products of up to BCAST_EXACT_BLOCK pairs of numbers, some of which leave the range of float64: they are
   scaled by powers of 2^32, and those that are too small beside others are added one by one. */
static inline void bcast_exact_add_scaled_products(bcast_exact *sum, const double *a, const double *b, ptrdiff_t n)
{
    const bcast_exponents own = bcast_exponents_of(a, n), other = a == b ? own : bcast_exponents_of(b, n);
    const int digits = bcast_scale_of(own.most), more = bcast_scale_of(other.most);
    double x[BCAST_EXACT_BLOCK], y[BCAST_EXACT_BLOCK], products[BCAST_EXACT_BLOCK], errors[BCAST_EXACT_BLOCK];

    bcast_scale_factors(a, x, n, digits);
    if (a != b) bcast_scale_factors(b, y, n, more);
    else memcpy(y, x, (size_t) n * sizeof *y);
    if (own.have_special || other.have_special || own.most - own.least > BCAST_SCALED_EXPONENTS
        || other.most - other.least > BCAST_SCALED_EXPONENTS) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const int is_special = a[i] - a[i] != 0 || b[i] - b[i] != 0;

            if (is_special) sum->special += a[i] * b[i];
            else if (fabs(x[i]) >= 0x1p-400 && fabs(y[i]) >= 0x1p-400) continue;
            else bcast_exact_add_product(sum, a[i], b[i]);
            x[i] = y[i] = 0;
        }
    }
    memset(x + n, 0, (size_t) (BCAST_EXACT_BLOCK - n) * sizeof *x);
    memset(y + n, 0, (size_t) (BCAST_EXACT_BLOCK - n) * sizeof *y);
    sum->kernels->multiply(x, y, products, errors);
    bcast_exact_add_scaled(sum, products, n, digits + more);
    bcast_exact_add_scaled(sum, errors, n, digits + more);
}

/* Add the products of up to BCAST_EXACT_BLOCK pairs of numbers; few of them one by one. */
static inline void bcast_exact_add_block_of_products(bcast_exact *sum, const double *a, const double *b, ptrdiff_t n)
{
    double products[BCAST_EXACT_BLOCK], errors[BCAST_EXACT_BLOCK], x[BCAST_EXACT_BLOCK], y[BCAST_EXACT_BLOCK];

    if (n < BCAST_EXACT_BLOCK / 8) {
        for (ptrdiff_t i = 0; i < n; i++) {
            if (a[i] - a[i] != 0 || b[i] - b[i] != 0) sum->special += a[i] * b[i];
            else bcast_exact_add_product(sum, a[i], b[i]);
        }
        return;
    }
    if (n < BCAST_EXACT_BLOCK) {
        memcpy(x, a, (size_t) n * sizeof *x);
        memcpy(y, b, (size_t) n * sizeof *y);
        memset(x + n, 0, (size_t) (BCAST_EXACT_BLOCK - n) * sizeof *x);
        memset(y + n, 0, (size_t) (BCAST_EXACT_BLOCK - n) * sizeof *y);
    }
    if (sum->kernels->multiply(n < BCAST_EXACT_BLOCK ? x : a, n < BCAST_EXACT_BLOCK ? y : b, products, errors)) {
        bcast_exact_add(sum, products, n);
        bcast_exact_add(sum, errors, n);
    } else {
        bcast_exact_add_scaled_products(sum, a, b, n);
    }
}

static inline void bcast_exact_add_products(bcast_exact *sum, const double *a, const double *b, ptrdiff_t n)
{
    for (ptrdiff_t done = 0, at_once; done < n; done += at_once) {
        at_once = n - done < BCAST_EXACT_BLOCK ? n - done : BCAST_EXACT_BLOCK;
        bcast_exact_add_block_of_products(sum, a + done, b + done, at_once);
    }
}

#endif
