/* Float32 rounded to float16 by plain code, which compilers vectorise. Included before `casts.inc.h`. */

constexpr bool rounds_quietly = true;     /* a signalling NaN is no error, and stays signalling */

ON_TARGET static void round_row_to_float16(ptrdiff_t n, const float *values, uint16_t *halves)
{
    uint32_t rare = 0;

    for (ptrdiff_t i = 0; i < n; i++) halves[i] = bcast_f16_bits_of_f32(values[i], &rare);

    if (rare & BCAST_F16_OVERFLOW) feraiseexcept(FE_OVERFLOW);
    if (rare & BCAST_F16_UNDERFLOW) feraiseexcept(FE_UNDERFLOW);
}
