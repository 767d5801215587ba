/* Conversions to and from float16 that report no error for a signalling NaN, and keep it signalling: NumPy moves its
   bits. For CPUs whose instructions do neither, after `casts.inc.h`. */

/* A float16 whose NaN is read quietly; and a float64 rounded to odd, by fast code or quietly. */
struct QuietFloat16 {
    using Item = uint16_t;

    BCAST_INLINE double value(Item bits) { return bcast_quiet_f64_of_f16(bits); }
};

struct OddFloat64 {
    using Item = double;

    BCAST_INLINE float value(Item item) { return bcast_odd_f32_of(item); }
};

struct QuietOddFloat64 {
    using Item = double;

    BCAST_INLINE float value(Item item) { return bcast_quiet_odd_f32_of(item); }
};

/* Convert by a fast loop; if it reports an invalid value, again by a quiet one. */
template <bcast_cast fast, bcast_cast quiet>
ON_TARGET void convert_quietly(ptrdiff_t n, const void *src, void *dst)
{
    const int was_invalid = fetestexcept(FE_INVALID);

    if (was_invalid) feclearexcept(FE_INVALID);
    fast(n, src, dst);
    if (fetestexcept(FE_INVALID)) {
        feclearexcept(FE_INVALID);
        quiet(n, src, dst);
    }
    if (was_invalid) feraiseexcept(FE_INVALID);
}

template <> struct Cast<float16, float64> { static constexpr bcast_cast loop = convert<QuietFloat16, float64>; };
template <> struct Cast<float16, complex128> { static constexpr bcast_cast loop = convert<QuietFloat16, complex128>; };
template <>
struct Cast<float64, float16> {
    static constexpr bcast_cast quiet = plain::narrow<plain::QuietOddFloat64, plain::ToFloat16>;
    static constexpr bcast_cast loop = convert_quietly<narrow<OddFloat64, ToFloat16>, quiet>;
};
template <>
struct Cast<float32, float16> {
    static constexpr bcast_cast fast = narrow_floats<ToFloat16>;
    static constexpr bcast_cast quiet = plain::narrow_floats<plain::ToFloat16>;
    static constexpr bcast_cast loop = rounds_quietly ? fast : convert_quietly<fast, quiet>;
};
