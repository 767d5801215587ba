/* The conversions of AVX2, with F16C and FMA. Compilers' own code for conversions of vectors has several times the
   instructions. */

/* Four floats as doubles. */
BCAST_INLINE Vector<double, 4> doubles(Vector<float, 4> x)
{
    return (Vector<double, 4>) _mm256_cvtps_pd((__m128) x);
}

/* Half number `i` of eight floats, as doubles. */
BCAST_INLINE Vector<double, 4> doubles_of_half(Vector<float, 8> x, int i)
{
    return (Vector<double, 4>) _mm256_cvtps_pd(
        i ? _mm256_extractf128_ps((__m256) x, 1) : _mm256_castps256_ps128((__m256) x));
}

/* Four doubles, rounded to floats. */
BCAST_INLINE Vector<float, 4> floats(Vector<double, 4> x)
{
    return (Vector<float, 4>) _mm256_cvtpd_ps((__m256d) x);
}

/* float16, given by its bits, as floats. */
BCAST_INLINE Vector<float, 8> floats_of_halves(Vector<uint16_t, 8> x)
{
    return (Vector<float, 8>) _mm256_cvtph_ps((__m128i) x);
}

/* bfloat16, given by its bits, as floats. */
BCAST_INLINE Vector<float, 4> floats_of_bfloats(Vector<uint16_t, 4> x)
{
    const __m128i bits = _mm_cvtepu16_epi32(_mm_set_epi64x(0, (int64_t) x));
    return (Vector<float, 4>) _mm_slli_epi32(bits, 16);
}

/* Four doubles rounded once, as the bits of float16: rounded to odd in float32 first, which avoids double rounding. */
BCAST_INLINE Vector<uint16_t, 4> halves_of(Vector<double, 4> x)
{
    const auto bits = (Vector<uint64_t, 4>) x, low = bits & 0x1fffffff;
    const __m128 odd = _mm256_cvtpd_ps((__m256d) ((bits | (low + 0x1fffffff)) & ~(uint64_t) 0x1fffffff));

    return (Vector<uint16_t, 4>) _mm_cvtsi128_si64(_mm_cvtps_ph(odd, _MM_FROUND_TO_NEAREST_INT));
}

/* The same as the bits of bfloat16. Rounding to odd is rounding towards zero, with an odd last bit if that is inexact.
   */
BCAST_INLINE Vector<uint16_t, 4> bfloats_of(Vector<double, 4> x)
{
    using Bits = Vector<uint32_t, 4>;
    using LongBits = Vector<uint64_t, 4>;
    const Vector<float, 4> nearest = __builtin_convertvector(x, Vector<float, 4>);
    const Vector<double, 4> back = __builtin_convertvector(nearest, Vector<double, 4>), zero = {};
    const LongBits is_away = (LongBits) (((back > x) & (x > zero)) | ((back < x) & (x < zero)));
    const LongBits is_inexact = (LongBits) (back != x);
    const Bits is_nan = (Bits) (nearest != nearest), sign = (Bits) nearest & 0x80000000;

    Bits bits = (Bits) nearest + __builtin_convertvector(is_away, Bits);
    bits |= __builtin_convertvector(is_inexact, Bits) & 1;
    bits += 0x7fff + (bits >> 16 & 1);
    bits = (is_nan & (sign | 0x7fc00000)) | (~is_nan & bits);
    return __builtin_convertvector(bits >> 16, Vector<uint16_t, 4>);
}

/* Square roots. */
BCAST_INLINE Vector<double, 4> roots(Vector<double, 4> x)
{
    return (Vector<double, 4>) _mm256_sqrt_pd((__m256d) x);
}

/* Ones that are unknown to compilers, which would otherwise remove multiplications by them. */
template <class V>
BCAST_INLINE V ones()
{
    V one = all_lanes<V>(1);
    __asm__("" : "+x"(one));
    return one;
}

/* A rounded product, which compilers cannot fuse with an addition. */
template <class V>
BCAST_INLINE V rounded(V product)
{
    __asm__("" : "+x"(product));
    return product;
}

/* The rounding error of a product of doubles. */
BCAST_INLINE Vector<double, 4> product_error(Vector<double, 4> a, Vector<double, 4> b, Vector<double, 4> product)
{
    return (Vector<double, 4>) _mm256_fmsub_pd((__m256d) a, (__m256d) b, (__m256d) product);
}

/* A bit for each byte of a mask. */
BCAST_INLINE uint64_t bits_of_mask(Vector<uint8_t, 32> mask)
{
    return static_cast<uint32_t>(_mm256_movemask_epi8((__m256i) mask));
}

/* In each lane, whether one of two numbers is NaN. */
BCAST_INLINE Vector<int32_t, 8> are_unordered(Vector<float, 8> a, Vector<float, 8> b)
{
    return (Vector<int32_t, 8>) _mm256_cmp_ps((__m256) a, (__m256) b, _CMP_UNORD_Q);
}

BCAST_INLINE Vector<int64_t, 4> are_unordered(Vector<double, 4> a, Vector<double, 4> b)
{
    return (Vector<int64_t, 4>) _mm256_cmp_pd((__m256d) a, (__m256d) b, _CMP_UNORD_Q);
}
