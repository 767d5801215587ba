/* Float32 rounded to float16 by the CPU's instruction. Included before `casts.inc.h`.

   Fewer items than a vector are padded with zeros, which cause no error. */

constexpr bool rounds_quietly = false;

ON_TARGET static void round_row_to_float16(ptrdiff_t n, const float *values, uint16_t *halves)
{
    Rare seen = nothing_rare();

    for (; n >= lanes; n -= lanes, values += lanes, halves += lanes) {
        const Halves rounded = rounded_to_float16(load(values), &seen);
        memcpy(halves, &rounded, sizeof rounded);
    }
    if (n > 0) {
        float rest[lanes] = {0};
        memcpy(rest, values, n * sizeof *values);
        const Halves rounded = rounded_to_float16(load(rest), &seen);
        memcpy(halves, &rounded, n * sizeof *halves);
    }

    if (has_underflow(seen)) feraiseexcept(FE_UNDERFLOW);
}
