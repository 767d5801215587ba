/* The conversions of NEON, which every CPU for arm64 has. */

/* Four floats as doubles. */
BCAST_INLINE Vector<double, 4> doubles(Vector<float, 4> x)
{
    const float32x4_t floats = (float32x4_t) x;
    return {(Vector<double, 2>) vcvt_f64_f32(vget_low_f32(floats)), (Vector<double, 2>) vcvt_high_f64_f32(floats)};
}

/* Half number `i` of eight floats, as doubles. */
BCAST_INLINE Vector<double, 4> doubles_of_half(Vector<float, 8> x, int i)
{
    return doubles(i ? x.high : x.low);
}

/* Four doubles, rounded to floats. */
BCAST_INLINE Vector<float, 4> floats(Vector<double, 4> x)
{
    return (Vector<float, 4>) vcvt_high_f32_f64(vcvt_f32_f64((float64x2_t) x.low), (float64x2_t) x.high);
}

/* The same, rounded to odd: a second rounding then has the result of a single one. */
BCAST_INLINE float32x4_t odd_floats(Vector<double, 4> x)
{
    return vcvtx_high_f32_f64(vcvtx_f32_f64((float64x2_t) x.low), (float64x2_t) x.high);
}

/* float16, given by its bits, as floats. */
BCAST_INLINE Vector<float, 8> floats_of_halves(Vector<uint16_t, 8> x)
{
    const float16x8_t halves = (float16x8_t) x;
    return {(Vector<float, 4>) vcvt_f32_f16(vget_low_f16(halves)), (Vector<float, 4>) vcvt_high_f32_f16(halves)};
}

/* bfloat16, given by its bits, as floats. */
BCAST_INLINE Vector<float, 4> floats_of_bfloats(Vector<uint16_t, 4> x)
{
    return (Vector<float, 4>) vshll_n_u16((uint16x4_t) x, 16);
}

/* Four doubles rounded once, as the bits of float16. */
BCAST_INLINE Vector<uint16_t, 4> halves_of(Vector<double, 4> x)
{
    return (Vector<uint16_t, 4>) vcvt_f16_f32(odd_floats(x));
}

/* The same as the bits of bfloat16, with NaN as in `bcast_bf16_bits_of`. */
BCAST_INLINE Vector<uint16_t, 4> bfloats_of(Vector<double, 4> x)
{
    using Bits = Vector<uint32_t, 4>;
    const float32x4_t odd = odd_floats(x);
    const Bits bits = (Bits) odd, is_number = (Bits) vceqq_f32(odd, odd);
    const Bits nearest = bits + (0x7fff + (bits >> 16 & 1)), nan = (bits & 0x80000000) | 0x7fc00000;

    return (Vector<uint16_t, 4>) vshrn_n_u32((uint32x4_t) ((is_number & nearest) | (~is_number & nan)), 16);
}

/* Square roots. */
BCAST_INLINE Vector<double, 4> roots(Vector<double, 4> x)
{
    return {(Vector<double, 2>) vsqrtq_f64((float64x2_t) x.low), (Vector<double, 2>) vsqrtq_f64((float64x2_t) x.high)};
}

/* Ones. */
template <class V>
BCAST_INLINE V ones()
{
    return all_lanes<V>(1);
}

/* A rounded product, which compilers cannot fuse with an addition. */
template <class V>
BCAST_INLINE V rounded(V product)
{
    if constexpr (is_two<V>) {
        return {rounded(product.low), rounded(product.high)};
    } else {
        __asm__("" : "+w"(product));
        return product;
    }
}

/* The rounding error of a product of doubles. */
BCAST_INLINE Vector<double, 2> product_error(Vector<double, 2> a, Vector<double, 2> b, Vector<double, 2> product)
{
    return (Vector<double, 2>) vfmaq_f64((float64x2_t) -product, (float64x2_t) a, (float64x2_t) b);
}
