/* Norms, variances and deviations of single rows, rounded once: for those that `results.inc.h` does not settle.

   The sums of items and of their squares are the integers of `exact.h`. So n * squares - sum^2 is a natural number,
   here of any length, and so is what divides it. An approximation of their quotient, or of its root, is moved from
   number to number, until the exact value is between the middles to both neighbours. No quotient and no root is made
   exactly: the middles are multiplied by what divides.

       middle^2 * divisor  <=  n * squares - sum^2  <=  next_middle^2 * divisor        (for roots) */

#ifndef BCAST_EXACT_SQUARES_H
#define BCAST_EXACT_SQUARES_H

#include "exact_products.h"

enum { BCAST_NATURAL_DIGITS = 400 };    /* of the sums of any float64, twice as many for products, and some more */

/* A natural number, times a power of 2. */
typedef struct {
    int count;                  /* of digits; the highest one is not 0 */
    int exponent;               /* of the lowest bit */
    uint64_t digits[BCAST_NATURAL_DIGITS];      /* of 32 bits each */
} bcast_natural;

static inline void bcast_natural_trim(bcast_natural *number)
{
    while (number->count > 0 && number->digits[number->count - 1] == 0) number->count--;
}

static inline void bcast_natural_set(bcast_natural *number, uint64_t value, int exponent)
{
    number->digits[0] = value & 0xffffffff;
    number->digits[1] = value >> 32;
    number->count = 2;
    number->exponent = exponent;
    bcast_natural_trim(number);
}

/* The fraction of a number of which bits are given, and the exponent of its lowest bit. */
BCAST_INLINE uint64_t bcast_fraction_of(uint64_t bits, int *exponent)
{
    const uint64_t field = bits >> 52 & 0x7ff, is_normal = field != 0;

    *exponent = (int) (field + !is_normal) - 1075;
    return (bits & 0xfffffffffffff) | is_normal << 52;
}

/* The magnitude of a sum, which is lost. */
static inline void bcast_natural_of_sum(bcast_natural *number, bcast_exact *sum)
{
    const int top = bcast_exact_top(sum), low = sum->low < top ? sum->low : top;

    bcast_exact_drop_sign(sum);
    number->count = top + 1 - low;
    number->exponent = BCAST_EXACT_LEAST + 32 * low;
    for (int i = 0; i < number->count; i++) number->digits[i] = (uint64_t) sum->digits[0][low + i];
    bcast_natural_trim(number);
}

static inline void bcast_natural_multiply(bcast_natural *product, const bcast_natural *a, const bcast_natural *b)
{
    product->count = a->count + b->count;
    product->exponent = a->exponent + b->exponent;
    memset(product->digits, 0, (size_t) product->count * sizeof(uint64_t));
    for (int i = 0; i < a->count; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < b->count; j++) {
            const uint64_t digit = a->digits[i] * b->digits[j] + product->digits[i + j] + carry;
            product->digits[i + j] = digit & 0xffffffff;
            carry = digit >> 32;
        }
        product->digits[i + b->count] = carry;
    }
    bcast_natural_trim(product);
}

/* Add a number, or subtract one that is not larger. */
static inline void bcast_natural_add(bcast_natural *to, const bcast_natural *number, int sign)
{
    const int below = to->count == 0 ? 0 : to->exponent - number->exponent;
    int first, shift, end;
    int64_t carry = 0;

    if (number->count == 0) return;
    if (to->count == 0) to->exponent = number->exponent;
    if (below > 0) {
        const int more = (below + 31) / 32;
        memmove(to->digits + more, to->digits, (size_t) to->count * sizeof(uint64_t));
        memset(to->digits, 0, (size_t) more * sizeof(uint64_t));
        to->count += more;
        to->exponent -= 32 * more;
    }
    first = (number->exponent - to->exponent) / 32;
    shift = (number->exponent - to->exponent) % 32;
    end = first + number->count + 2;    /* one for the shift, one for a carry */
    while (to->count < end) to->digits[to->count++] = 0;

    for (int i = first; i < to->count; i++) {
        const int k = i - first;
        const uint64_t digit = k < number->count ? number->digits[k] : 0;
        const uint64_t before = k > 0 && k <= number->count ? number->digits[k - 1] : 0;
        const uint64_t shifted = ((digit << shift) | (shift ? before >> (32 - shift) : 0)) & 0xffffffff;
        const int64_t total = (int64_t) to->digits[i] + sign * (int64_t) shifted + carry;
        to->digits[i] = (uint64_t) total & 0xffffffff;
        carry = total >> 32;
    }
    bcast_natural_trim(to);
}

/* The exponent above that of the highest bit of a number other than 0. */
static inline int bcast_natural_end(const bcast_natural *number)
{
    const uint64_t top = number->digits[number->count - 1];
    int bits = 0;

    while (top >> bits != 0) bits++;
    return number->exponent + 32 * (number->count - 1) + bits;
}

BCAST_INLINE uint64_t bcast_natural_digit(const bcast_natural *number, int i)
{
    return i < 0 || i >= number->count ? 0 : number->digits[i];
}

/* 32 bits from an exponent on. */
static inline uint64_t bcast_natural_bits(const bcast_natural *number, int from)
{
    const int at = from - number->exponent, i = (at + 32 * BCAST_NATURAL_DIGITS) / 32 - BCAST_NATURAL_DIGITS;
    const int place = at - 32 * i;

    if (at <= -32) return 0;
    return (bcast_natural_digit(number, i) | bcast_natural_digit(number, i + 1) << 32) >> place & 0xffffffff;
}

/* Whether a number is greater than another one: 1, or less: -1. */
static inline int bcast_natural_compare(const bcast_natural *a, const bcast_natural *b)
{
    const int least = a->exponent < b->exponent ? a->exponent : b->exponent;
    int end, other;

    if (a->count == 0 || b->count == 0) return (a->count > 0) - (b->count > 0);
    end = bcast_natural_end(a);
    other = bcast_natural_end(b);
    if (end != other) return end > other ? 1 : -1;
    do {
        uint64_t some, others;
        end -= 32;
        some = bcast_natural_bits(a, end);
        others = bcast_natural_bits(b, end);
        if (some != others) return some > others ? 1 : -1;
    } while (end > least);
    return 0;
}

/* ---- Quotients and roots ---- */

typedef struct {
    bcast_natural value;        /* which is divided */
    bcast_natural by;
    int is_root;                /* whether the root of the quotient is the result */
} bcast_quotient;

/* Whether the exact result is greater than a fraction, times a power of 2: 1, or less: -1. */
static inline int bcast_quotient_compare(const bcast_quotient *exact, uint64_t fraction, int exponent)
{
    bcast_natural number, product, square;

    bcast_natural_set(&number, fraction, exponent);
    bcast_natural_multiply(&product, &exact->by, &number);
    if (!exact->is_root) return bcast_natural_compare(&exact->value, &product);
    bcast_natural_multiply(&square, &product, &number);
    return bcast_natural_compare(&exact->value, &square);
}

static inline int bcast_quotient_compare_bits(const bcast_quotient *exact, uint64_t bits)
{
    int exponent;
    const uint64_t fraction = bcast_fraction_of(bits, &exponent);

    return bcast_quotient_compare(exact, fraction, exponent);
}

/* The same with the middle between a number of which bits are given and the next one. */
static inline int bcast_quotient_compare_middle(const bcast_quotient *exact, uint64_t bits)
{
    int exponent;
    const uint64_t fraction = bcast_fraction_of(bits, &exponent);

    return bcast_quotient_compare(exact, 2 * fraction + 1, exponent - 1);
}

/* A float64 a few last places from the exact result. */
static inline double bcast_quotient_about(const bcast_quotient *exact)
{
    const bcast_natural *value = &exact->value, *by = &exact->by;
    const int end = bcast_natural_end(value), other = bcast_natural_end(by);
    const double high = (double) bcast_natural_bits(value, end - 32) * 0x1p32;
    const double other_high = (double) bcast_natural_bits(by, other - 32) * 0x1p32;
    double about = (high + (double) bcast_natural_bits(value, end - 64))
        / (other_high + (double) bcast_natural_bits(by, other - 64));
    int exponent = end - other;

    if (exact->is_root) {
        if (exponent & 1) {
            about *= 2;
            exponent--;
        }
        about = sqrt(about);
        exponent /= 2;
    }
    if (exponent > 1100) return DBL_MAX;
    if (exponent < -1200) return 0;
    about = ldexp(about, exponent);
    return about > DBL_MAX ? DBL_MAX : about;
}

/* The exact result, rounded to nearest, ties to even; with `to_odd` as in `bcast_exact_rounded`. It is clearer whole: a
   search in each direction. */
static inline double bcast_quotient_rounded(const bcast_quotient *exact, int to_odd)
{
    const uint64_t infinity = (uint64_t) 0x7ff << 52;
    uint64_t bits;
    int order;

    if (exact->value.count == 0) return 0;
    bits = bcast_f64_bits_of(bcast_quotient_about(exact));
    if (to_odd) {
        while (bits > 0 && bcast_quotient_compare_bits(exact, bits) < 0) bits--;
        while (bits < infinity && bcast_quotient_compare_bits(exact, bits + 1) >= 0) bits++;    /* up to 2^1024 */
        return bits == infinity ? bcast_f64_of(infinity)
            : bcast_f64_of(bits | (bcast_quotient_compare_bits(exact, bits) != 0));
    }
    while (bits < infinity && (order = bcast_quotient_compare_middle(exact, bits)) >= 0) {
        if (order == 0) return bcast_f64_of(bits + (bits & 1));
        bits++;
    }
    while (bits > 0 && (order = bcast_quotient_compare_middle(exact, bits - 1)) <= 0) {
        if (order == 0) return bcast_f64_of(bits - (bits & 1));
        bits--;
    }
    return bcast_f64_of(bits);
}

/* ---- Rows ---- */

enum { BCAST_MEASURED_PARTS = 2 };      /* of complex items */

/* What is made of rows. */
typedef struct {
    int parts;                  /* of each item: 1, or 2 if it is complex */
    int has_means;              /* whether squares are of differences from the mean */
    int is_root;
    int to_odd;                 /* whether results are rounded again, to fewer bits */
    int skips_nan;
    double ddof;
} bcast_measuring;

/* The exact sums of a row. */
typedef struct {
    bcast_exact sums[BCAST_MEASURED_PARTS];
    bcast_exact squares;
} bcast_row_sums;

static inline void bcast_row_begin(bcast_row_sums *row, const bcast_block_kernels *kernels)
{
    for (int i = 0; i < BCAST_MEASURED_PARTS; i++) bcast_exact_begin(&row->sums[i], kernels);
    bcast_exact_begin(&row->squares, kernels);
}

static inline void bcast_row_clear(bcast_row_sums *row)
{
    for (int i = 0; i < BCAST_MEASURED_PARTS; i++) bcast_exact_clear(&row->sums[i]);
    bcast_exact_clear(&row->squares);
}

/* Add float64, if there is a `sum`, and their squares, `stride` bytes from one to the next; return how many. */
static inline ptrdiff_t bcast_row_add_floats(
    bcast_exact *sum, bcast_exact *squares, const char *src, ptrdiff_t stride, ptrdiff_t n, int skips_nan)
{
    double items[BCAST_EXACT_BLOCK];
    ptrdiff_t count = n;

    for (ptrdiff_t done = 0, at_once; done < n; done += at_once) {
        double nothing = 0;
        at_once = n - done < BCAST_EXACT_BLOCK ? n - done : BCAST_EXACT_BLOCK;
        for (ptrdiff_t i = 0; i < at_once; i++) {
            memcpy(&items[i], src + (done + i) * stride, sizeof(double));
            nothing += items[i] - items[i];
        }
        for (ptrdiff_t i = 0; nothing != 0 && i < at_once; i++) {
            const double item = items[i];
            if (item - item == 0) continue;
            items[i] = 0;
            if (skips_nan && item != item) {
                count--;
                continue;
            }
            if (sum != NULL) sum->special += item;
            squares->special += item * item;
        }
        if (sum != NULL) bcast_exact_add(sum, items, at_once);
        bcast_exact_add_products(squares, items, items, at_once);
    }
    return count;
}

/* Add an integer, times 2^(32 * digits). */
static inline void bcast_exact_add_integer(bcast_exact *sum, uint64_t value, int digits, int sign)
{
    enum { PLACE = -BCAST_EXACT_LEAST % 32, UNIT = -BCAST_EXACT_LEAST / 32 };    /* of 1 */
    int64_t *at = sum->digits[0] + UNIT + digits;

    at[0] += sign * (int64_t) (value << PLACE & 0xffffffff);
    at[1] += sign * (int64_t) (value >> (32 - PLACE) & 0xffffffff);
    at[2] += sign * (int64_t) (value >> (64 - PLACE));
    if (UNIT + digits < sum->low) sum->low = UNIT + digits;
    if (UNIT + digits + 2 > sum->high) sum->high = UNIT + digits + 2;
}

/* Sums of halves of integers, and of their products, each times a power of 2^32. */
typedef struct {
    int64_t high;               /* 1 */
    uint64_t low;               /* 0 */
    uint64_t squares[4];        /* 0, 1, 2, 3 */
} bcast_integer_sums;

enum { BCAST_INTEGERS_AT_ONCE = 1 << 29 };      /* whose sums fit */

/* Sum integers of 64 bits; up to BCAST_INTEGERS_AT_ONCE of them. */
static inline void bcast_sum_integers(
    bcast_integer_sums *sums, int has_sign, const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    int64_t high = 0;
    uint64_t low = 0, squares = 0, crossed = 0, crossed_high = 0, high_squares = 0, top = 0, mask = 0xffffffff;

    for (ptrdiff_t i = 0; i < n; i++) {
        uint64_t bits, size, a, b, product;
        memcpy(&bits, src + i * stride, sizeof bits);
        high += has_sign ? (int64_t) bits >> 32 : (int64_t) (bits >> 32);
        low += bits & mask;
        size = has_sign && (int64_t) bits < 0 ? 0 - bits : bits;
        a = size >> 32;
        b = size & mask;
        product = b * b;
        squares += product & mask;
        crossed += product >> 32;
        product = a * b;
        crossed += 2 * (product & mask);
        crossed_high += 2 * (product >> 32);
        product = a * a;
        high_squares += product & mask;
        top += product >> 32;
    }
    sums->high = high;
    sums->low = low;
    sums->squares[0] = squares;
    sums->squares[1] = crossed;
    sums->squares[2] = crossed_high + high_squares;
    sums->squares[3] = top;
}

/* Add integers of 64 bits and their squares. */
static inline void bcast_row_add_integers(
    bcast_exact *sum, bcast_exact *squares, int has_sign, const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    for (ptrdiff_t done = 0, at_once; done < n; done += at_once) {
        bcast_integer_sums sums;
        at_once = n - done < BCAST_INTEGERS_AT_ONCE ? n - done : BCAST_INTEGERS_AT_ONCE;
        bcast_sum_integers(&sums, has_sign, src + done * stride, stride, at_once);
        bcast_exact_add_integer(sum, sums.low, 0, 1);
        bcast_exact_add_integer(sum, (uint64_t) (sums.high < 0 ? -sums.high : sums.high), 1, sums.high < 0 ? -1 : 1);
        for (int i = 0; i < 4; i++) bcast_exact_add_integer(squares, sums.squares[i], i, 1);
        bcast_exact_carry(sum);
        bcast_exact_carry(squares);
    }
}

/* ---- Digits, and bounded sums ---- */

/* Write the digits of a sum, each to its place among BCAST_EXACT_DIGITS; extend the range of digits that are in use.
   All but the highest one of a sum are from 0 to 2^32 - 1; that one has the sign. */
static inline void bcast_exact_write_digits(bcast_exact *sum, int64_t *digits, int *low, int *high)
{
    int top;

    bcast_exact_carry(sum);
    top = bcast_exact_top(sum);
    while (top > sum->low && sum->digits[0][top] == 0) top--;
    while (top > sum->low && sum->digits[0][top] == -1 && sum->digits[0][top - 1] >> 31 == 1)
        sum->digits[0][--top] -= (int64_t) 1 << 32;
    if (top < sum->low) return;
    for (int i = sum->low; i <= top; i++) digits[i] = sum->digits[0][i];
    if (sum->low < *low) *low = sum->low;
    if (top > *high) *high = top;
}

/* Replace a sum by one of which `n` digits are given, from digit `low` on; their magnitudes are below 2^62. */
static inline void bcast_exact_read_digits(bcast_exact *sum, const int64_t *digits, ptrdiff_t stride, int low, int n)
{
    bcast_exact_clear(sum);
    if (n == 0) return;
    for (int i = 0; i < n; i++) sum->digits[0][low + i] = digits[i * stride];
    sum->low = low;
    sum->high = low + n - 1;
}

/* Write sums of up to BCAST_INTEGERS_AT_ONCE integers and of their squares as two numbers and a bound each, `apart`
   numbers from each other. */
static inline void bcast_bound_integers(const bcast_integer_sums *from, double *sum, double *squares, ptrdiff_t apart)
{
    const double units[] = {1, 0x1p32, 0x1p64, 0x1p96};
    const uint64_t mask = 0xffffffff;
    const int64_t high = from->high + (int64_t) (from->low >> 32);
    double total = (double) (high >> 32) * 0x1p64, lost = 0, bound = 0, most, rest;
    uint64_t digits[4], carry = 0;

    bcast_two_sum(&total, &lost, (double) (high & (int64_t) mask) * 0x1p32);
    bcast_two_sum(&total, &lost, (double) (from->low & mask));      /* both errors have bits below 2^64 */
    sum[0] = total + lost;
    sum[apart] = BCAST_TWO_SUM_ERROR(total, lost, sum[0]);
    sum[2 * apart] = 0;

    for (int i = 0; i < 4; i++) {
        const uint64_t digit = from->squares[i] + carry;
        digits[i] = i < 3 ? digit & mask : digit;
        carry = digit >> 32;
    }
    total = (double) (digits[3] >> 32) * 0x1p128;
    lost = 0;
    for (int i = 4; i-- > 0;) bcast_cascade_add_term(&total, &lost, &bound, (double) (digits[i] & mask) * units[i]);
    most = total + lost;
    rest = BCAST_TWO_SUM_ERROR(total, lost, most);
    squares[0] = most;
    squares[apart] = rest;
    squares[2 * apart] = bound;
}

/* n * (n - ddof), which is positive. */
static inline void bcast_measured_divisor(bcast_natural *by, uint64_t n, double ddof)
{
    bcast_natural count, rest, lost;
    int exponent;
    const uint64_t fraction = bcast_fraction_of(bcast_f64_bits_of(ddof), &exponent);

    bcast_natural_set(&count, n, 0);
    bcast_natural_set(&rest, n, 0);
    bcast_natural_set(&lost, fraction, exponent);
    bcast_natural_add(&rest, &lost, ddof < 0 ? 1 : -1);
    bcast_natural_multiply(by, &count, &rest);
}

/* What is made of the sums of a row of `n` items; the sums are lost. */
static inline double bcast_measured(const bcast_measuring *how, bcast_row_sums *row, uint64_t n)
{
    bcast_quotient exact;
    bcast_natural sum, square, count;

    if (!how->has_means) {
        if (row->squares.special != 0) return sqrt(row->squares.special);
        bcast_natural_of_sum(&exact.value, &row->squares);
        bcast_natural_set(&exact.by, 1, 0);
    } else {
        if (row->squares.special != 0 || n == 0 || !((double) n > how->ddof)) return (double) NAN;
        bcast_natural_of_sum(&sum, &row->squares);
        bcast_natural_set(&count, n, 0);
        bcast_natural_multiply(&exact.value, &count, &sum);
        for (int i = 0; i < how->parts; i++) {
            bcast_natural_of_sum(&sum, &row->sums[i]);
            bcast_natural_multiply(&square, &sum, &sum);
            bcast_natural_add(&exact.value, &square, -1);
        }
        bcast_measured_divisor(&exact.by, n, how->ddof);
    }
    exact.is_root = how->is_root;
    return bcast_quotient_rounded(&exact, how->to_odd);
}

#endif
