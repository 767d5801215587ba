/* Exact sums of float64, one at a time: for the results that `exact_sums.inc.h` does not settle. A cascade settles most
   of them, such as those halfway between two numbers; the others are added as integers.

   A cascade adds each term to a sum by two_sum, the rounding error to an error term by two_sum, and the magnitude of
   the second rounding error to a bound.

   A float64 is a multiple of 2^-1074, a product of two is a multiple of 2^-2148, and no sum of 2^63 products has more
   than 4300 bits. The sum is an integer with digits of 32 bits, each in 64 bits so that carries can wait: R. M. Neal's
   small superaccumulator (Fast exact summation using small and large superaccumulators, arXiv:1505.05571, 2015). The
   exponent of a term determines its two digits:

       exponent    |   number of a digit   | place in it |        exponent / 32, exponent % 32
       fraction           |...53 bits....|
       digits      ...|  number + 1   |    number     |...

   The integer is multiplied, divided and rounded once, at the end. */

#ifndef BCAST_EXACT_H
#define BCAST_EXACT_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"
#include "sum.h"

enum {
    BCAST_EXACT_BELOW = 36,     /* digits of products below those of a float64, whose last bit is 2^-1074 */
    BCAST_EXACT_DIGITS = 140,   /* 4480 bits: 4275 of products, 63 for 2^63 terms, 63 for a repeat count */
    BCAST_EXACT_ROOM = 1024,    /* terms that can be added between carries: 52 bits each, in both halves of the sum */
    BCAST_EXACT_LEAST = -1075 - 32 * BCAST_EXACT_BELOW  /* the exponent of the lowest bit */
};

enum {
    BCAST_CASCADE_LANES = 4,    /* lanes, whose additions are independent */
    BCAST_EXACT_PASSES = 3      /* passes over a block, before the rests are added one by one */
};

typedef struct {
    double sum[BCAST_CASCADE_LANES];
    double error[BCAST_CASCADE_LANES];
    double bound[BCAST_CASCADE_LANES];
    double special;             /* the sum of infinite terms and NaNs */
} bcast_cascade;

BCAST_INLINE void bcast_cascade_add_term(double *sum, double *error, double *bound, double term)
{
    double lost = 0, rest = 0;

    bcast_two_sum(sum, &lost, term);
    bcast_two_sum(error, &rest, lost);
    *bound += fabs(rest);
}

/* Add `n` terms. */
static inline void bcast_cascade_add(bcast_cascade *to, const double *terms, ptrdiff_t n)
{
    double sum[BCAST_CASCADE_LANES], error[BCAST_CASCADE_LANES], bound[BCAST_CASCADE_LANES], special = 0;
    ptrdiff_t i = 0;

    memcpy(sum, to->sum, sizeof sum);       /* local variables, which compilers keep in registers */
    memcpy(error, to->error, sizeof error);
    memcpy(bound, to->bound, sizeof bound);
    for (; i + BCAST_CASCADE_LANES <= n; i += BCAST_CASCADE_LANES)
        for (int k = 0; k < BCAST_CASCADE_LANES; k++)
            bcast_cascade_add_term(&sum[k], &error[k], &bound[k], terms[i + k]);
    for (; i < n; i++) bcast_cascade_add_term(&sum[0], &error[0], &bound[0], terms[i]);
    memcpy(to->sum, sum, sizeof sum);
    memcpy(to->error, error, sizeof error);
    memcpy(to->bound, bound, sizeof bound);

    for (int k = 0; k < BCAST_CASCADE_LANES; k++) special += sum[k] - sum[k];
    if (special == 0) return;
    for (i = 0; i < n; i++)
        if (terms[i] - terms[i] != 0) to->special += terms[i];
}

/* Add all lanes to the first one. */
static inline void bcast_cascade_fold(bcast_cascade *sum)
{
    for (int k = 1; k < BCAST_CASCADE_LANES; k++) {
        double rest = 0;
        bcast_cascade_add_term(&sum->sum[0], &sum->error[0], &sum->bound[0], sum->sum[k]);
        bcast_two_sum(&sum->error[0], &rest, sum->error[k]);
        sum->bound[0] += fabs(rest) + sum->bound[k];
    }
}

/* The same for terms that are scaled down, so that no sum overflows. */
typedef struct {
    bcast_cascade sum;
    double scale;               /* a power of 2 */
    double lost;                /* the number of terms that lose bits by scaling */
} bcast_scaled_cascade;

static inline void bcast_cascade_add_scaled(bcast_scaled_cascade *to, const double *terms, ptrdiff_t n)
{
    double scaled[BCAST_EXACT_BLOCK];

    for (ptrdiff_t done = 0, at_once; done < n; done += at_once) {
        at_once = n - done < BCAST_EXACT_BLOCK ? n - done : BCAST_EXACT_BLOCK;
        for (ptrdiff_t i = 0; i < at_once; i++) {
            scaled[i] = terms[done + i] * to->scale;
            to->lost += scaled[i] / to->scale != terms[done + i];
        }
        bcast_cascade_add(&to->sum, scaled, at_once);
    }
}

/* The sum of the infinite terms and NaNs among `n` terms, with a stride of `stride` bytes; 0 if there are none. */
static inline double bcast_special_sum(const char *src, ptrdiff_t stride, ptrdiff_t n)
{
    double nothing[BCAST_CASCADE_LANES] = {0}, special = 0, term;
    ptrdiff_t i = 0;

    if (stride == sizeof term)
        for (; i + BCAST_CASCADE_LANES <= n; i += BCAST_CASCADE_LANES)
            for (int k = 0; k < BCAST_CASCADE_LANES; k++) {
                memcpy(&term, src + (i + k) * (ptrdiff_t) sizeof term, sizeof term);
                nothing[k] += term - term;
            }
    for (; i < n; i++) {
        memcpy(&term, src + i * stride, sizeof term);
        nothing[0] += term - term;
    }
    if (nothing[0] + nothing[1] + (nothing[2] + nothing[3]) == 0) return 0;
    for (i = 0; i < n; i++) {
        memcpy(&term, src + i * stride, sizeof term);
        if (term - term != 0) special += term;
    }
    return special;
}

typedef struct {
    int64_t digits[2][BCAST_EXACT_DIGITS];  /* two halves of the sum, so that no addition waits for the previous one */
    int low;                                /* the lowest digit to which a term was added */
    int high;                               /* the highest digit to which a term was added */
    int room;                               /* terms that can be added before the next carries */
    double special;                         /* the sum of infinite terms and NaNs */
    const bcast_block_kernels *kernels;     /* the steps over blocks of terms, of a target */
} bcast_exact;

static inline void bcast_exact_begin(bcast_exact *sum, const bcast_block_kernels *kernels)
{
    memset(sum, 0, sizeof *sum);
    sum->kernels = kernels;
    sum->low = BCAST_EXACT_DIGITS - 1;
    sum->room = BCAST_EXACT_ROOM;
}

BCAST_INLINE int bcast_exact_top(const bcast_exact *sum);

/* Begin again: only digits that are in use become 0. */
static inline void bcast_exact_clear(bcast_exact *sum)
{
    const int top = bcast_exact_top(sum), n = top < sum->low ? 0 : top + 1 - sum->low;

    memset(sum->digits[0] + sum->low, 0, (size_t) n * sizeof(int64_t));
    memset(sum->digits[1] + sum->low, 0, (size_t) n * sizeof(int64_t));
    sum->low = BCAST_EXACT_DIGITS - 1;
    sum->high = 0;
    sum->room = BCAST_EXACT_ROOM;
    sum->special = 0;
}

/* The top digit, which has the sign of the sum: three digits above the highest one of a term. */
BCAST_INLINE int bcast_exact_top(const bcast_exact *sum)
{
    return sum->high + 3 < BCAST_EXACT_DIGITS ? sum->high + 3 : BCAST_EXACT_DIGITS - 1;
}

/* Carry, so that each digit but the top one is from 0 to 2^32 - 1, and the second half is 0. */
static inline void bcast_exact_carry(bcast_exact *sum)
{
    int64_t *digits = sum->digits[0], *others = sum->digits[1], carry = 0;
    const int top = bcast_exact_top(sum);

    for (int i = sum->low; i <= top; i++) {
        const int64_t digit = digits[i] + others[i] + carry;
        carry = digit >> 32;
        digits[i] = i < top ? digit & 0xffffffff : digit;
        others[i] = 0;
    }
    sum->room = BCAST_EXACT_ROOM;
}

/* Add a finite number, given by its bits, to half of a sum; return the number of its lower digit. */
BCAST_INLINE int bcast_exact_add_bits(int64_t *digits, uint64_t bits)
{
    const uint64_t exponent = bits >> 52 & 0x7ff, is_normal = exponent != 0;
    const uint64_t fraction = (bits & 0xfffffffffffff) | is_normal << 52, place = (exponent + !is_normal) & 31;
    const int64_t sign = -(int64_t) (bits >> 63);
    const int64_t low = (int64_t) (fraction << place & 0xffffffff), high = (int64_t) (fraction >> (32 - place));
    const int number = (int) ((exponent + !is_normal) >> 5);

    digits[number] += (low ^ sign) - sign;
    digits[number + 1] += (high ^ sign) - sign;
    return number;
}

/* Add a finite number, given by its bits, to half of a sum, `digits` digits above the lowest one. */
BCAST_INLINE void bcast_exact_add_number(bcast_exact *sum, int half, uint64_t bits, int digits)
{
    int number;

    if (sum->room == 0) bcast_exact_carry(sum);
    sum->room--;
    number = bcast_exact_add_bits(sum->digits[half] + digits, bits) + digits;
    if (number < sum->low) sum->low = number;
    if (number >= sum->high) sum->high = number + 1;
}

/* Add one term, times 2^(32 * shift), to half of a sum. A term of 0 has no digit, and there may be none for it. */
BCAST_INLINE void bcast_exact_add_term(bcast_exact *sum, int half, double term, int shift)
{
    const uint64_t bits = bcast_f64_bits_of(term);

    if (term == 0) return;
    if ((bits >> 52 & 0x7ff) == 0x7ff) sum->special += term;
    else bcast_exact_add_number(sum, half, bits, BCAST_EXACT_BELOW + shift);
}

/* Multiply the terms of a block by 2^-128; return whether that loses nothing. */
static inline int bcast_scale_down(double *terms)
{
    double lost = 0;

    for (int i = 0; i < BCAST_EXACT_BLOCK; i++) {
        const double scaled = terms[i] * 0x1p-128;
        lost += fabs(scaled * 0x1p128 - terms[i]);
        terms[i] = scaled;
    }
    return lost == 0;
}

/* Add the leading bits of a block of terms by additions to two anchors, as in `exact_sums.inc.h`, and replace each term
   by its rest. Return whether a rest is not 0. The magnitudes of all terms have a sum below 2 * `power`, a power of 2.

   Let `power` be 2^e. In each of four lanes or more, the sum of the terms is below 2^(e + 1), and the sum of the first
   rests of 64 terms is at most 2^(e - 44). The anchors have last places of 2^(e - 49) and 2^(e - 94), so the rest of a
   term is finally at most 2^(e - 95). */
static inline int bcast_exact_add_leading(bcast_exact *sum, double *terms, double power, int shift)
{
    double sums[2];
    const int is_left = sum->kernels->take_leading(terms, power, sums);

    bcast_exact_add_term(sum, 0, sums[0], shift);
    bcast_exact_add_term(sum, 1, sums[1], shift);
    return is_left;
}

/* Add up to BCAST_EXACT_BLOCK terms, times 2^(32 * digits), in passes, each of which adds leading bits; return whether
   nothing remains. If not, `rests` has what remains of each term. */
static inline int bcast_exact_add_block(
    bcast_exact *sum, const double *terms, double *rests, ptrdiff_t n, int digits)
{
    double block[BCAST_EXACT_BLOCK];
    double magnitudes, power, scale = 1;
    int shift = 0;

    memset(block + n, 0, (BCAST_EXACT_BLOCK - n) * sizeof *block);
    memcpy(block, terms, n * sizeof *terms);
    magnitudes = sum->kernels->sum_of_magnitudes(block);
    if (magnitudes == 0) return 1;
    if (magnitudes < 0x1p-500) {
        shift = -16;    /* digits */
        scale = 0x1p512;
        for (int i = 0; i < BCAST_EXACT_BLOCK; i++) block[i] *= scale;
        magnitudes *= scale;
    } else if (!(magnitudes < 0x1p900)) {
        shift = 4;
        scale = 0x1p-128;
        if (!bcast_scale_down(block)) goto unchanged;
        magnitudes = sum->kernels->sum_of_magnitudes(block);
    }
    if (!(magnitudes >= 0x1p-500 && magnitudes <= DBL_MAX)) goto unchanged;

    power = bcast_f64_of(bcast_f64_bits_of(magnitudes) & (uint64_t) 0x7ff << 52);
    for (int pass = 0; pass < BCAST_EXACT_PASSES; pass++, power *= 0x1p-87)
        if (!bcast_exact_add_leading(sum, block, power, shift + digits)) return 1;
    for (int i = 0; shift && i < BCAST_EXACT_BLOCK; i++) block[i] *= 1 / scale;
    memcpy(rests, block, n * sizeof *rests);
    return 0;

unchanged:
    memcpy(rests, terms, n * sizeof *rests);
    return 0;
}

/* Add `n` terms, times 2^(32 * digits): by blocks, and what remains of them one by one. */
static inline void bcast_exact_add_scaled(bcast_exact *sum, const double *terms, ptrdiff_t n, int digits)
{
    double rests[BCAST_EXACT_BLOCK];

    for (ptrdiff_t done = 0, at_once; done < n; done += at_once) {
        const double *some = terms + done;

        at_once = n - done < BCAST_EXACT_BLOCK ? n - done : BCAST_EXACT_BLOCK;
        if (at_once >= BCAST_EXACT_BLOCK / 4) {
            if (bcast_exact_add_block(sum, some, rests, at_once, digits)) continue;
            some = rests;
        }
        for (ptrdiff_t i = 0; i < at_once; i++) bcast_exact_add_term(sum, i & 1, some[i], digits);
    }
}

static inline void bcast_exact_add(bcast_exact *sum, const double *terms, ptrdiff_t n)
{
    bcast_exact_add_scaled(sum, terms, n, 0);
}

/* Carry, and replace the sum by its magnitude; return whether it was negative. */
static inline int bcast_exact_drop_sign(bcast_exact *sum)
{
    int64_t *digits = sum->digits[0];
    int is_negative;

    bcast_exact_carry(sum);
    is_negative = digits[bcast_exact_top(sum)] < 0;
    if (is_negative) {
        for (int i = sum->low; i <= bcast_exact_top(sum); i++) digits[i] = -digits[i];
        bcast_exact_carry(sum);
    }
    return is_negative;
}

/* Multiply a sum by an integer: the count by which its terms are repeated. */
static inline void bcast_exact_multiply(bcast_exact *sum, uint64_t by)
{
    const uint64_t low = by & 0xffffffff, high = by >> 32;
    const int is_negative = bcast_exact_drop_sign(sum);

    for (int i = bcast_exact_top(sum); i >= sum->low; i--) {    /* from the top, so that no changed digit is read */
        const uint64_t digit = (uint64_t) sum->digits[0][i], by_low = digit * low, by_high = digit * high;
        const int64_t parts[] = {
            (int64_t) (by_low & 0xffffffff),
            (int64_t) ((by_low >> 32) + (by_high & 0xffffffff)),
            (int64_t) (by_high >> 32),
        };
        sum->digits[0][i] = 0;
        for (int j = 0; j < 3 && i + j < BCAST_EXACT_DIGITS; j++) sum->digits[1][i + j] += parts[j];
    }
    sum->high = bcast_exact_top(sum);
    bcast_exact_carry(sum);
    for (int i = sum->low; is_negative && i <= bcast_exact_top(sum); i++) sum->digits[0][i] = -sum->digits[0][i];
}

/* The number nearest to `fraction` * 2^exponent; ties to even. `fraction` has 62 bits, and `rest` means that there are
   bits below it. With `to_odd`, an inexact result gets an odd last bit instead, so that a second rounding to fewer bits
   has the result of a single one. */
static inline double bcast_exact_rounded(uint64_t fraction, int exponent, int rest, int to_odd)
{
    const uint64_t infinity = (uint64_t) 0x7ff << 52;
    const int shift = exponent + 9 < -1074 ? -1074 - exponent : 9;      /* bits below the last place */
    uint64_t kept, below, half, bits;

    if (shift > 62) return to_odd ? bcast_f64_of(1) : 0;    /* less than half of the least number */
    kept = fraction >> shift;
    below = fraction & (((uint64_t) 1 << shift) - 1);
    half = (uint64_t) 1 << (shift - 1);

    if (to_odd) kept |= below > 0 || rest;
    else kept += below > half || (below == half && (rest || (kept & 1)));

    bits = ((uint64_t) (exponent + shift + 1074) << 52) + kept;     /* the leading bit of a normal number adds 1 here */
    return bcast_f64_of(exponent + shift > 1000 || bits > infinity ? infinity : bits);
}

/* Digit number `i` of a sum that is not negative. */
BCAST_INLINE uint64_t bcast_exact_digit(const bcast_exact *sum, int i)
{
    return i < 0 || i >= BCAST_EXACT_DIGITS ? 0 : (uint64_t) sum->digits[0][i];
}

/* The 62 leading bits of a sum that is not negative; `bit` is the number of the lowest of them. */
static inline uint64_t bcast_exact_leading(const bcast_exact *sum, int bit)
{
    const int from = (bit + 96) / 32 - 3, place = bit - 32 * from;
    uint64_t bits = bcast_exact_digit(sum, from) >> place | bcast_exact_digit(sum, from + 1) << (32 - place);

    if (place > 0) bits |= bcast_exact_digit(sum, from + 2) << (64 - place);
    return bits & (((uint64_t) 1 << 62) - 1);
}

/* A sum divided by an integer below 2^62, and rounded once. This overwrites the sum. It is clearer whole: it needs the
   quotient's bits, the place of the last one, and the remainder below it. */
static inline double bcast_exact_result(bcast_exact *sum, uint64_t divisor, int to_odd)
{
    int64_t *digits = sum->digits[0];
    uint64_t quotient = 0, remainder = 0;
    int top, bit, rest, is_negative;
    double result;

    if (sum->special != 0) return sum->special;     /* or NaN */
    is_negative = bcast_exact_drop_sign(sum);
    top = bcast_exact_top(sum);
    while (top > sum->low && digits[top] == 0) top--;
    if (digits[top] == 0) return 0;

    bit = 32 * top + 31;
    if (divisor == 1) {
        while (digits[top] >> (bit - 32 * top) == 0) bit--;
        bit -= 61;
        quotient = bcast_exact_leading(sum, bit);
    } else {
        for (; quotient >> 61 == 0; bit--) {        /* long division, bit by bit */
            const uint64_t digit = bit < 0 ? 0 : bcast_exact_digit(sum, bit / 32) >> bit % 32 & 1;
            remainder = 2 * remainder + digit;
            quotient = 2 * quotient + (remainder >= divisor);
            if (remainder >= divisor) remainder -= divisor;
        }
        bit++;      /* the place of the quotient's last bit */
    }

    rest = remainder != 0;
    for (int i = sum->low; bit > 0 && i <= bit / 32; i++) {
        const uint64_t below = i < bit / 32 ? ~(uint64_t) 0 : ((uint64_t) 1 << bit % 32) - 1;
        rest |= ((uint64_t) digits[i] & below) != 0;
    }
    result = bcast_exact_rounded(quotient, bit + BCAST_EXACT_LEAST, rest, to_odd);
    return is_negative ? -result : result;
}

#endif
