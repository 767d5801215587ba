/* The conversions of targets without dedicated instructions: compilers generate code for each CPU. */

#if BCAST_VECTORS

/* Four floats as doubles. */
BCAST_INLINE Vector<double, 4> doubles(Vector<float, 4> x)
{
    using Half = Vector<double, 2>;
    const auto low = half_of<Vector<float, 2>>(x, 0), high = half_of<Vector<float, 2>>(x, 1);
    return {__builtin_convertvector(low, Half), __builtin_convertvector(high, Half)};
}

/* Half number `i` of eight floats, as doubles. */
BCAST_INLINE Vector<double, 4> doubles_of_half(Vector<float, 8> x, int i)
{
    return doubles(half_of<Vector<float, 4>>(x, i));
}

/* Four doubles, rounded to floats. */
BCAST_INLINE Vector<float, 4> floats(Vector<double, 4> x)
{
    return Vector<float, 4>{
        static_cast<float>(x.low[0]), static_cast<float>(x.low[1]),
        static_cast<float>(x.high[0]), static_cast<float>(x.high[1]),
    };
}

/* float16, given by its bits, as floats, as in `bcast_f16_of`. */
BCAST_INLINE Vector<float, 4> floats_of_halves(Vector<uint16_t, 4> x)
{
    using Bits = Vector<uint32_t, 4>;
    using Floats = Vector<float, 4>;
    const Bits bits = __builtin_convertvector(x, Bits);
    const Floats size = (Floats) ((bits & 0x7fff) << 13) * 0x1p112f;
    const Bits special = (Bits) (size >= 0x1p16f) & 0x7f800000;

    return (Floats) ((Bits) size | special | (bits & 0x8000) << 16);
}

BCAST_INLINE Vector<float, 8> floats_of_halves(Vector<uint16_t, 8> x)
{
    using Half = Vector<uint16_t, 4>;
    return {floats_of_halves(half_of<Half>(x, 0)), floats_of_halves(half_of<Half>(x, 1))};
}

/* bfloat16, given by its bits, as floats. */
BCAST_INLINE Vector<float, 4> floats_of_bfloats(Vector<uint16_t, 4> x)
{
    using Bits = Vector<uint32_t, 4>;
    return (Vector<float, 4>) (__builtin_convertvector(x, Bits) << 16);
}

/* Four doubles rounded once, as the bits of float16. */
BCAST_INLINE Vector<uint16_t, 4> halves_of(Vector<double, 4> x)
{
    return Vector<uint16_t, 4>{
        bcast_f16_bits_of(x.low[0]), bcast_f16_bits_of(x.low[1]),
        bcast_f16_bits_of(x.high[0]), bcast_f16_bits_of(x.high[1]),
    };
}

/* The same as the bits of bfloat16. */
BCAST_INLINE Vector<uint16_t, 4> bfloats_of(Vector<double, 4> x)
{
    return Vector<uint16_t, 4>{
        bcast_bf16_bits_of(x.low[0]), bcast_bf16_bits_of(x.low[1]),
        bcast_bf16_bits_of(x.high[0]), bcast_bf16_bits_of(x.high[1]),
    };
}

/* Square roots. */
BCAST_INLINE Vector<double, 4> roots(Vector<double, 4> x)
{
    using Half = Vector<double, 2>;
    return {
        Half{__builtin_sqrt(x.low[0]), __builtin_sqrt(x.low[1])},
        Half{__builtin_sqrt(x.high[0]), __builtin_sqrt(x.high[1])},
    };
}

/* Ones. */
template <class V>
BCAST_INLINE V ones()
{
    return all_lanes<V>(1);
}

#else

/* One. */
template <class V>
BCAST_INLINE V ones()
{
    return 1;
}

#endif

/* A rounded product, which compilers cannot fuse with an addition. */
template <class V>
BCAST_INLINE V rounded(V product)
{
#if defined(__GNUC__) && !defined(__x86_64__)
    __asm__("" : "+m"(product));
#endif
    return product;
}

/* The upper 26 bits of doubles, rounded: G. W. Veltkamp's splitting. */
template <class V>
BCAST_INLINE V upper_half(V x)
{
    const V large = x * 0x1.0000002p27;
    return large - (large - x);
}

/* The rounding error of a product of doubles, by T. J. Dekker's method, which needs no fused multiply-add. */
template <class V>
BCAST_INLINE V product_error(V a, V b, V product)
{
    const V a_high = upper_half(a), a_low = a - a_high, b_high = upper_half(b), b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}
