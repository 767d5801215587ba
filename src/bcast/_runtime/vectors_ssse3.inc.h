/* The words of SSSE3: bytes. */

typedef __m128i Bytes;

BCAST_INLINE Bytes load_register(const uint8_t *at) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at)); }
BCAST_INLINE void store_register(uint8_t *at, Bytes x) { _mm_storeu_si128(reinterpret_cast<__m128i *>(at), x); }

/* A lane at `at`; a vector of two would have its second one `second` bytes further. */
BCAST_INLINE Bytes load_lanes(const uint8_t *at, ptrdiff_t) { return load_register(at); }

/* The bytes with some numbers, of the 16 at `window`. */
BCAST_INLINE Bytes pick(const uint8_t *window, Bytes numbers)
{
    return _mm_shuffle_epi8(load_register(window), numbers);
}

/* Items of `size` bytes, alternating from x and y: from the lower halves of their lanes; and from the upper ones. */
template <int size>
BCAST_INLINE Bytes interleaved_low(Bytes x, Bytes y)
{
    if constexpr (size == 1) return _mm_unpacklo_epi8(x, y);
    else if constexpr (size == 2) return _mm_unpacklo_epi16(x, y);
    else if constexpr (size == 4) return _mm_unpacklo_epi32(x, y);
    else return _mm_unpacklo_epi64(x, y);
}

template <int size>
BCAST_INLINE Bytes interleaved_high(Bytes x, Bytes y)
{
    if constexpr (size == 1) return _mm_unpackhi_epi8(x, y);
    else if constexpr (size == 2) return _mm_unpackhi_epi16(x, y);
    else if constexpr (size == 4) return _mm_unpackhi_epi32(x, y);
    else return _mm_unpackhi_epi64(x, y);
}
