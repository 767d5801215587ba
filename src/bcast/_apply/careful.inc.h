/* A loop of two operands that looks at some items before it computes them: by vector code, unless one IS_RARE.

   In: the NAME of the loop, the type of an ITEM, that of its BITS, and what computes items: USUAL(n, x, y, out), or if
   IS_RARE of the bits of some that are looked at together, RARE(x, y). `loops.h` includes this file for each loop.
   An operand's items lie side by side, or one stands for all. */

BCAST_INLINE void BCAST_JOIN(NAME, ITEM)(ptrdiff_t n, char *const *data, const ptrdiff_t *steps, ptrdiff_t which)
{
    ITEM same[2][128], *out = (ITEM *) data[2];
    const ptrdiff_t most = sizeof same[0] / sizeof(ITEM);
    (void) which;       /* if one loop serves several functions */
    for (int k = 0; k < 2; k++)
        for (ptrdiff_t i = 0; i < most && i < n && steps[k] == 0; i++) same[k][i] = *(const ITEM *) data[k];
    for (ptrdiff_t at = 0; at < n; at += most, out += most) {
        const ptrdiff_t items = n - at < most ? n - at : most;
        const ITEM *x = steps[0] ? (const ITEM *) data[0] + at : same[0];
        const ITEM *y = steps[1] ? (const ITEM *) data[1] + at : same[1];
        BITS rare = 0;
        for (ptrdiff_t i = 0; i < items; i++) {
            BITS p, q;
            memcpy(&p, x + i, sizeof p);
            memcpy(&q, y + i, sizeof q);
            rare |= IS_RARE(p, q);
        }
        if (rare)
            for (ptrdiff_t i = 0; i < items; i++) out[i] = RARE(x[i], y[i]);
        else
            USUAL(items, x, y, out);
    }
}

#undef NAME
#undef ITEM
#undef BITS
#undef IS_RARE
#undef USUAL
#undef RARE
