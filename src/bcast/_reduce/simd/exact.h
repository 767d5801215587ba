/* Exact sums of float64: what results are made by that no sum with an error term settles.

   A number is a whole multiple of 2^-1074, and no sum of 2^63 of them has more than 2200 bits. So a sum is held as the
   integer that it is, in digits of 32 bits with room for carries: R. M. Neal's small superaccumulator (Fast exact
   summation using small and large superaccumulators, arXiv:1505.05571, 2015). A term goes to two neighbouring digits,
   which its exponent tells:

       exponent    |  number of the digit  | place in it |        exponent / 32, exponent % 32
       fraction           |...53 bits....|
       digits      ...|  number + 1   |    number     |...

   In the end the integer is multiplied, divided and rounded once. */

#ifndef BCAST_EXACT_H
#define BCAST_EXACT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../_runtime/floats.h"
#include "../../_runtime/target.h"

enum {
    BCAST_EXACT_DIGITS = 72,    /* 2304 bits: 2098 of a number, 63 for 2^63 terms, 63 for how often these come */
    BCAST_EXACT_ROOM = 1024,    /* terms that digits have room for: of 52 bits each, 512 of them in each half */
    BCAST_EXACT_LEAST = -1075   /* the exponent of the lowest bit: one less than that of the least number */
};

typedef struct {
    int64_t digits[2][BCAST_EXACT_DIGITS];  /* two halves of the sum: no addition waits for the one before */
    int low;                                /* the lowest digit that a term was added to */
    int high;                               /* the highest one */
    int room;                               /* terms that can be added before digits are carried */
    double special;                         /* the sum of infinite terms and NaNs */
} bcast_exact;

static inline void bcast_exact_begin(bcast_exact *sum)
{
    memset(sum, 0, sizeof *sum);
    sum->low = BCAST_EXACT_DIGITS - 1;
    sum->room = BCAST_EXACT_ROOM;
}

/* Three digits above all that terms were added to: it has a sum's sign. */
static inline int bcast_exact_top(const bcast_exact *sum)
{
    return sum->high + 3 < BCAST_EXACT_DIGITS ? sum->high + 3 : BCAST_EXACT_DIGITS - 1;
}

/* Let all digits but the top one have 32 bits without a sign, and the second half none. */
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

/* Add `n` terms. */
static inline void bcast_exact_add(bcast_exact *sum, const double *terms, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint64_t bits = bcast_f64_bits_of(terms[i]);

        if ((bits >> 52 & 0x7ff) == 0x7ff) {
            sum->special += terms[i];
            continue;
        }
        if (sum->room == 0) bcast_exact_carry(sum);
        sum->room--;
        const int number = bcast_exact_add_bits(sum->digits[i & 1], bits);
        if (number < sum->low) sum->low = number;
        if (number >= sum->high) sum->high = number + 1;
    }
}

/* Multiply a sum that has no sign by a whole number. */
static inline void bcast_exact_multiply(bcast_exact *sum, uint64_t by)
{
    const uint64_t low = by & 0xffffffff, high = by >> 32;

    for (int i = bcast_exact_top(sum); i >= sum->low; i--) {        /* from above: what is multiplied is not needed again */
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
}

/* The number nearest to `fraction`, of 62 bits, times 2^exponent, ties to even; or `to_odd`, where what is inexact gets
   an odd last bit, so that it is rounded to fewer bits as if only once. `rest` tells of bits below. */
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

    bits = ((uint64_t) (exponent + shift + 1074) << 52) + kept;     /* the highest bit of normal ones adds to these */
    return bcast_f64_of(exponent + shift > 1000 || bits > infinity ? infinity : bits);
}

/* Digit number `i` of a sum that has no sign. */
BCAST_INLINE uint64_t bcast_exact_digit(const bcast_exact *sum, int i)
{
    return i < 0 || i >= BCAST_EXACT_DIGITS ? 0 : (uint64_t) sum->digits[0][i];
}

/* A sum, whose terms come `repeats` times, divided by a whole number of less than 2^62, and rounded once. */
static inline double bcast_exact_result(bcast_exact *sum, uint64_t repeats, uint64_t divisor, int to_odd)
{
    int64_t *digits = sum->digits[0];
    uint64_t quotient = 0, remainder = 0;
    int top, bit, rest, is_negative;
    double result;

    if (sum->special != 0) return sum->special;     /* or NaN */
    bcast_exact_carry(sum);
    top = bcast_exact_top(sum);
    is_negative = digits[top] < 0;
    if (is_negative) {
        for (int i = sum->low; i <= top; i++) digits[i] = -digits[i];
        bcast_exact_carry(sum);
    }
    if (repeats != 1) {
        bcast_exact_multiply(sum, repeats);
        top = bcast_exact_top(sum);
    }
    while (top > sum->low && digits[top] == 0) top--;
    if (digits[top] == 0) return 0;

    bit = 32 * top + 31;
    if (divisor == 1) {
        while (digits[top] >> (bit - 32 * top) == 0) bit--;
        bit -= 61;      /* the lowest one of the 62 that are taken */
        const int from = (bit + 96) / 32 - 3, place = bit - 32 * from;
        quotient = bcast_exact_digit(sum, from) >> place | bcast_exact_digit(sum, from + 1) << (32 - place);
        if (place > 0) quotient |= bcast_exact_digit(sum, from + 2) << (64 - place);
        quotient &= ((uint64_t) 1 << 62) - 1;
    } else {
        for (; quotient >> 61 == 0; bit--) {        /* as by hand, in bits */
            const uint64_t digit = bit < 0 ? 0 : bcast_exact_digit(sum, bit / 32) >> bit % 32 & 1;
            remainder = 2 * remainder + digit;
            quotient = 2 * quotient + (remainder >= divisor);
            if (remainder >= divisor) remainder -= divisor;
        }
        bit++;      /* of which the last digit of the quotient is */
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
