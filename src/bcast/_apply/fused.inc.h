/* Fused steps on whole vectors of items, for one target.

   In: the target's NAME and how it compiles, ON; the BYTES of a vector; `bcast_NAME_values`, which converts bytes to
   float32, and `bcast_NAME_halves`, float32 to float16; if it HAS_MORE, `bcast_NAME_bytes`, float32 to bytes, and
   functions for bounds and rounding. `fused.h` includes this file for each target. */

#define VECTOR BCAST_JOIN(NAME, vector)
#define FLOATS BCAST_JOIN(NAME, floats)
typedef float FLOATS __attribute__((vector_size(BYTES), aligned(4), may_alias));

#define CASE(name, result)                                                          \
    case 2 * bcast_number_##name:                                                    \
        for (int j = 0; j < count; j++) {                                           \
            const VECTOR y = one;                                                   \
            x[j] = result;                                                          \
        }                                                                           \
        break;                                                                      \
    case 2 * bcast_number_##name + 1:                                                \
        for (int j = 0; j < count; j++) {                                           \
            const VECTOR y = ((const FLOATS *) operand)[j];                         \
            x[j] = result;                                                          \
        }                                                                           \
        break;

/* Tiles of `count` vectors; returns the item that is next. */
ON BCAST_INLINE ptrdiff_t BCAST_JOIN(NAME, tiles)(
    int count, ptrdiff_t at, const bcast_fusion *given, uint32_t *rare)
{
    const bcast_fusion all = *given;        /* which no store can change */
    const ptrdiff_t lanes = BYTES / sizeof(float);
    for (; at + lanes * count <= all.n; at += lanes * count) {
        VECTOR x[8];
        for (int j = 0; j < count; j++)
            if (all.bytes) BCAST_JOIN(NAME, values)((const uint8_t *) all.src + at + lanes * j, x + j);
            else x[j] = ((const FLOATS *) ((const float *) all.src + at))[j];
        for (int s = 0; s < all.steps; s++) {
            const float *operand = all.operands[s] + (all.strides[s] ? at : 0);
            const VECTOR one = *operand - (VECTOR) {0};
            switch (2 * all.functions[s] + (all.strides[s] != 0)) {
            CASE(add, x[j] + y)
            CASE(subtract, x[j] - y)
            CASE(multiply, x[j] * y)
            CASE(divide, x[j] / y)
#if HAS_MORE
            CASE(maximum, BCAST_JOIN(NAME, maximum)(x[j], y))
            CASE(minimum, BCAST_JOIN(NAME, minimum)(x[j], y))
            CASE(at_least, BCAST_JOIN(NAME, at_least)(x[j], y))
            CASE(at_most, BCAST_JOIN(NAME, at_most)(x[j], y))
            case 2 * bcast_number_rint:
                for (int j = 0; j < count; j++) x[j] = BCAST_JOIN(NAME, rint)(x[j]);
                break;
#endif
            }
        }
        if (all.into == bcast_into_halves) {
            for (int j = 0; j < count; j++)
                BCAST_JOIN(NAME, halves)(x + j, (uint16_t *) all.dst + at + lanes * j, rare);
            continue;
        }
#if HAS_MORE
        if (all.into != bcast_into_floats) {
            BCAST_JOIN(NAME, bytes)(count, x, (uint8_t *) all.dst + at, all.into == bcast_into_cut_bytes);
            continue;
        }
#endif
        for (int j = 0; j < count; j++) ((FLOATS *) ((float *) all.dst + at))[j] = x[j];
    }
    return at;
}
ON static ptrdiff_t BCAST_JOIN(NAME, fused)(ptrdiff_t at, const bcast_fusion *all, uint32_t *all_rare)
{
    uint32_t rare = 0;
    at = BCAST_JOIN(NAME, tiles)(8, at, all, &rare);
    at = BCAST_JOIN(NAME, tiles)(1, at, all, &rare);
    *all_rare |= rare;
    return at;
}

#undef NAME
#undef ON
#undef BYTES
#undef HAS_MORE
#undef VECTOR
#undef FLOATS
#undef CASE
