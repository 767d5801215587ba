/* The words of AVX-512, which copies do not use: there are none for bytes. */

constexpr int lanes = 16;
constexpr bool has_halves = true;
typedef __m512 Floats;
typedef __mmask16 Mask;
typedef __m512i Words;
typedef __m256i Halves;
typedef __m512i Rare;       /* as in AVX2 */

BCAST_INLINE Floats load(const float *at) { return _mm512_loadu_ps(at); }
BCAST_INLINE void store(float *at, Floats x) { _mm512_storeu_ps(at, x); }
BCAST_INLINE Floats repeated(float x) { return _mm512_set1_ps(x); }

BCAST_INLINE Floats add(Floats x, Floats y) { return _mm512_add_ps(x, y); }
BCAST_INLINE Floats subtract(Floats x, Floats y) { return _mm512_sub_ps(x, y); }
BCAST_INLINE Floats multiply(Floats x, Floats y) { return _mm512_mul_ps(x, y); }
BCAST_INLINE Floats divide(Floats x, Floats y) { return _mm512_div_ps(x, y); }
BCAST_INLINE Floats rounded_to_whole(Floats x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT);
}

/* Masks, with a bit for each number. */
template <Comparison how>
BCAST_INLINE Mask compare(Floats x, Floats y)
{
    return _mm512_cmp_ps_mask(x, y, how);
}

BCAST_INLINE Mask both(Mask x, Mask y) { return x & y; }
BCAST_INLINE Floats or_zero(Mask mask, Floats x) { return _mm512_maskz_mov_ps(mask, x); }
BCAST_INLINE Floats choose(Mask mask, Floats x, Floats y) { return _mm512_mask_mov_ps(y, mask, x); }
BCAST_INLINE Halves choose(Mask mask, Halves x, Halves y)
{
    return _mm256_mask_blend_epi16(mask, y, x);
}

/* Words: bits of floats, and operations on them. */
BCAST_INLINE Words bits_of(Floats x) { return _mm512_castps_si512(x); }
BCAST_INLINE Words repeated_word(int x) { return _mm512_set1_epi32(x); }
BCAST_INLINE Words sum_of_words(Words x, Words y) { return _mm512_add_epi32(x, y); }
BCAST_INLINE Words common_bits(Words x, Words y) { return _mm512_and_si512(x, y); }
BCAST_INLINE Words all_bits(Words x, Words y) { return _mm512_or_si512(x, y); }
BCAST_INLINE Words upper_halves(Words x) { return _mm512_srli_epi32(x, 16); }
BCAST_INLINE Words choose(Mask mask, Words x, Words y) { return _mm512_mask_blend_epi32(mask, y, x); }
BCAST_INLINE Halves narrowed(Words x) { return _mm512_cvtepi32_epi16(x); }

BCAST_INLINE Halves bools(Mask mask) { return _mm256_castsi128_si256(_mm_maskz_set1_epi8(mask, 1)); }

/* Floats of 16 bits. */
BCAST_INLINE void store(uint16_t *at, Halves x) { memcpy(at, &x, sizeof x); }

BCAST_INLINE Rare nothing_rare() { return _mm512_set1_epi32(-1); }
BCAST_INLINE bool has_underflow(Rare seen) { return _mm512_testn_epi32_mask(seen, seen) != 0; }

BCAST_INLINE Halves rounded_to_float16(Floats x, Rare *seen)
{
    const __m512i rounded_bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7ffff000));
    *seen = _mm512_min_epu32(*seen, _mm512_xor_si512(rounded_bits, _mm512_set1_epi32(0x387ff000)));
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

BCAST_INLINE Floats values_of_float16(Halves x) { return _mm512_cvtph_ps(x); }

BCAST_INLINE Floats values_of_bfloat16(Halves x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

/* Bytes. */
BCAST_INLINE Floats values_of_bytes(const uint8_t *at)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(at))));
}

template <int count>
BCAST_INLINE void store_bytes(uint8_t *at, const Floats (&x)[count])
{
    for (int j = 0; j < count; j++) {
        const __m512i words = _mm512_cvttps_epi32(x[j]);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + lanes * j), _mm512_cvtepi32_epi8(words));
    }
}

template <int count>
BCAST_INLINE void store_saturated_bytes(uint8_t *at, const Floats (&x)[count])
{
    for (int j = 0; j < count; j++) {
        const Floats above = or_zero(compare<quiet_greater>(x[j], _mm512_setzero_ps()), x[j]);
        const __m512i words = _mm512_cvtps_epi32(_mm512_min_ps(above, _mm512_set1_ps(255)));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + lanes * j), _mm512_cvtepi32_epi8(words));
    }
}
