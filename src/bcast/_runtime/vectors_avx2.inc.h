/* The words of AVX2, with F16C. */

constexpr int lanes = 8;
constexpr bool has_halves = true;
typedef __m256 Floats;
typedef __m256 Mask;
typedef __m256i Words;
typedef __m128i Halves;
typedef __m256i Rare;       /* 0 in some lane after such an error */
typedef __m256i Bytes;

BCAST_INLINE Floats load(const float *at) { return _mm256_loadu_ps(at); }
BCAST_INLINE void store(float *at, Floats x) { _mm256_storeu_ps(at, x); }
BCAST_INLINE Floats repeated(float x) { return _mm256_set1_ps(x); }

BCAST_INLINE Floats add(Floats x, Floats y) { return _mm256_add_ps(x, y); }
BCAST_INLINE Floats subtract(Floats x, Floats y) { return _mm256_sub_ps(x, y); }
BCAST_INLINE Floats multiply(Floats x, Floats y) { return _mm256_mul_ps(x, y); }
BCAST_INLINE Floats divide(Floats x, Floats y) { return _mm256_div_ps(x, y); }
BCAST_INLINE Floats rounded_to_whole(Floats x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT); }

/* Masks, and choices by them: x where a mask holds, else y. */
template <Comparison how>
BCAST_INLINE Mask compare(Floats x, Floats y)
{
    return _mm256_cmp_ps(x, y, how);
}

BCAST_INLINE Mask both(Mask x, Mask y) { return _mm256_and_ps(x, y); }
BCAST_INLINE Floats or_zero(Mask mask, Floats x) { return _mm256_and_ps(mask, x); }
BCAST_INLINE Floats choose(Mask mask, Floats x, Floats y) { return _mm256_blendv_ps(y, x, mask); }

/* A mask of halves. */
BCAST_INLINE __m128i narrowed(Mask mask)
{
    const __m128i first = _mm_castps_si128(_mm256_castps256_ps128(mask));
    const __m128i last = _mm_castps_si128(_mm256_extractf128_ps(mask, 1));
    return _mm_packs_epi32(first, last);
}

BCAST_INLINE Halves choose(Mask mask, Halves x, Halves y)
{
    return _mm_blendv_epi8(y, x, narrowed(mask));
}

/* Words: bits of floats, and operations on them. */
BCAST_INLINE Words bits_of(Floats x) { return _mm256_castps_si256(x); }
BCAST_INLINE Words repeated_word(int x) { return _mm256_set1_epi32(x); }
BCAST_INLINE Words sum_of_words(Words x, Words y) { return _mm256_add_epi32(x, y); }
BCAST_INLINE Words common_bits(Words x, Words y) { return _mm256_and_si256(x, y); }
BCAST_INLINE Words all_bits(Words x, Words y) { return _mm256_or_si256(x, y); }
BCAST_INLINE Words upper_halves(Words x) { return _mm256_srli_epi32(x, 16); }
BCAST_INLINE Words choose(Mask mask, Words x, Words y)
{
    return _mm256_blendv_epi8(y, x, _mm256_castps_si256(mask));
}

/* Words of less than 2^16 as halves. */
BCAST_INLINE Halves narrowed(Words x)
{
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(x, x), 0x08));
}

/* A mask as bools, in the first bytes. */
BCAST_INLINE Halves bools(Mask mask)
{
    return _mm_and_si128(_mm_set1_epi8(1), _mm_packs_epi16(narrowed(mask), _mm_setzero_si128()));
}

/* Floats of 16 bits. The CPU reports underflow for numbers that are tiny after they are rounded to float16, NumPy for
   numbers that are tiny before: they differ for numbers that become the smallest normal number. */
BCAST_INLINE void store(uint16_t *at, Halves x) { memcpy(at, &x, sizeof x); }

BCAST_INLINE Rare nothing_rare() { return _mm256_set1_epi32(-1); }
BCAST_INLINE bool has_underflow(Rare seen)
{
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(seen, _mm256_setzero_si256())) != 0;
}

BCAST_INLINE Halves rounded_to_float16(Floats x, Rare *seen)
{
    const __m256i rounded_bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7ffff000));
    *seen = _mm256_min_epu32(*seen, _mm256_xor_si256(rounded_bits, _mm256_set1_epi32(0x387ff000)));
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

BCAST_INLINE Floats values_of_float16(Halves x) { return _mm256_cvtph_ps(x); }

BCAST_INLINE Floats values_of_bfloat16(Halves x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

/* Bytes. Compilers generate slow code for conversions of vectors. */
BCAST_INLINE Floats values_of_bytes(const uint8_t *at)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(at))));
}

/* As integers of 32 bits: the last bytes of whole numbers, as in C; or numbers rounded and clipped to 0 and 255; NaN
   becomes 0. */
BCAST_INLINE __m256i last_bytes(Floats x)
{
    return _mm256_and_si256(_mm256_cvttps_epi32(x), _mm256_set1_epi32(0xff));
}

BCAST_INLINE __m256i saturated_bytes(Floats x)
{
    const Floats above = or_zero(compare<quiet_greater>(x, _mm256_setzero_ps()), x);
    return _mm256_cvtps_epi32(_mm256_min_ps(above, _mm256_set1_ps(255)));
}

/* The last eight of 32 bits. */
BCAST_INLINE void store_last_bytes(uint8_t *at, __m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(at), _mm256_permutevar8x32_epi32(bytes, order));
}

BCAST_INLINE void store_last_bytes(uint8_t *at, __m256i words)
{
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(at), _mm_packus_epi16(halves, halves));
}

template <int count>
BCAST_INLINE void store_bytes(uint8_t *at, const Floats (&x)[count])
{
    int j = 0;
    for (; j + 4 <= count; j += 4)
        store_last_bytes(
            at + lanes * j, last_bytes(x[j]), last_bytes(x[j + 1]), last_bytes(x[j + 2]), last_bytes(x[j + 3]));
    for (; j < count; j++) store_last_bytes(at + lanes * j, last_bytes(x[j]));
}

template <int count>
BCAST_INLINE void store_saturated_bytes(uint8_t *at, const Floats (&x)[count])
{
    int j = 0;
    for (; j + 4 <= count; j += 4)
        store_last_bytes(
            at + lanes * j, saturated_bytes(x[j]), saturated_bytes(x[j + 1]), saturated_bytes(x[j + 2]),
            saturated_bytes(x[j + 3]));
    for (; j < count; j++) store_last_bytes(at + lanes * j, saturated_bytes(x[j]));
}

/* ---- Registers of bytes: two lanes of 16 ---- */

BCAST_INLINE __m128i load_lane(const uint8_t *at) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at)); }
BCAST_INLINE Bytes load_register(const uint8_t *at)
{
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(at));
}

BCAST_INLINE void store_register(uint8_t *at, Bytes x) { _mm256_storeu_si256(reinterpret_cast<__m256i *>(at), x); }

/* A lane at `at`, and the second one `second` bytes further. */
BCAST_INLINE Bytes load_lanes(const uint8_t *at, ptrdiff_t second)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_lane(at)), load_lane(at + second), 1);
}

BCAST_INLINE void store_lanes(uint8_t *at, ptrdiff_t second, Bytes x)
{
    _mm256_storeu2_m128i(reinterpret_cast<__m128i *>(at + second), reinterpret_cast<__m128i *>(at), x);
}

/* The bytes with some numbers, within their lane. */
BCAST_INLINE Bytes pick_in_lanes(Bytes x, Bytes numbers) { return _mm256_shuffle_epi8(x, numbers); }

/* The bytes with some numbers, of the 16 at `window`, for both lanes. */
BCAST_INLINE Bytes pick(const uint8_t *window, Bytes numbers)
{
    return pick_in_lanes(_mm256_broadcastsi128_si256(load_lane(window)), numbers);
}

/* Bytes of x where the mask is 255, and of y where it is 0. */
BCAST_INLINE Bytes choose(Bytes mask, Bytes x, Bytes y) { return _mm256_blendv_epi8(y, x, mask); }

/* Items of `size` bytes, alternating from x and y: from the lower halves of their lanes; and from the upper ones. */
template <int size>
BCAST_INLINE Bytes interleaved_low(Bytes x, Bytes y)
{
    if constexpr (size == 1) return _mm256_unpacklo_epi8(x, y);
    else if constexpr (size == 2) return _mm256_unpacklo_epi16(x, y);
    else if constexpr (size == 4) return _mm256_unpacklo_epi32(x, y);
    else return _mm256_unpacklo_epi64(x, y);
}

template <int size>
BCAST_INLINE Bytes interleaved_high(Bytes x, Bytes y)
{
    if constexpr (size == 1) return _mm256_unpackhi_epi8(x, y);
    else if constexpr (size == 2) return _mm256_unpackhi_epi16(x, y);
    else if constexpr (size == 4) return _mm256_unpackhi_epi32(x, y);
    else return _mm256_unpackhi_epi64(x, y);
}
