/* Conversions to and from float16 by NEON, whose instructions report NumPy's errors: compilers do not vectorise
   `__fp16`. Included after `casts.inc.h`. */

/* Float64, rounded to odd as float32, which then rounds to the same float16 as the float64. */
BCAST_INLINE float32x4_t four_rounded_to_odd(const double *at)
{
    return vcvtx_high_f32_f64(vcvtx_f32_f64(vld1q_f64(at)), vld1q_f64(at + 2));
}

static void narrow_float64(ptrdiff_t n, const void *src, void *dst)
{
    const auto *items = static_cast<const double *>(src);
    auto *halves = static_cast<uint16_t *>(dst);
    Rare seen;

    for (; n >= lanes; n -= lanes, items += lanes, halves += lanes) {
        const Floats odd = {{four_rounded_to_odd(items), four_rounded_to_odd(items + 4)}};
        vst1q_u16(halves, rounded_to_float16(odd, &seen));
    }
    for (ptrdiff_t i = 0; i < n; i++) halves[i] = bcast_f16_bits_of(items[i]);
}

/* An integer of 64 bits, through float64, which has vector code: integers that it rounds are infinite as float16. */
template <class T>
struct Long {
    using Item = T;

    BCAST_INLINE float value(T item) { return static_cast<float>(static_cast<double>(item)); }
};

/* Float16 as float32. Two vectors are read before one is stored, so that one instruction reads both. */
static void read_float16(ptrdiff_t n, const uint16_t *halves, float *values)
{
    for (; n >= 2 * lanes; n -= 2 * lanes, halves += 2 * lanes, values += 2 * lanes) {
        const Halves first = vld1q_u16(halves), last = vld1q_u16(halves + lanes);
        store(values, values_of_float16(first));
        store(values + lanes, values_of_float16(last));
    }
    for (ptrdiff_t i = 0; i < n; i++) values[i] = bcast_f16_of(halves[i]);
}

static void floats_of_float16(ptrdiff_t n, const void *src, void *dst)
{
    read_float16(n, static_cast<const uint16_t *>(src), static_cast<float *>(dst));
}

/* Float16 as integers of up to 32 bits. Integers of 8 and 16 bits are the last bits of one of 32, as for single
   items. */
template <class T, class Middle>
static void integers_of_float16(ptrdiff_t n, const void *src, void *dst)
{
    constexpr ptrdiff_t most = 256;
    const auto *halves = static_cast<const uint16_t *>(src);
    auto *integers = static_cast<T *>(dst);
    float values[most];

    for (ptrdiff_t done = 0, count; done < n; done += count) {
        count = n - done < most ? n - done : most;
        read_float16(count, halves + done, values);
        for (ptrdiff_t i = 0; i < count; i++) integers[done + i] = static_cast<T>(static_cast<Middle>(values[i]));
    }
}

/* Float16 as numbers of 64 bits, through float64. */
BCAST_INLINE void store_float64(double *at, float64x2_t x) { vst1q_f64(at, x); }
BCAST_INLINE void store_float64(int64_t *at, float64x2_t x) { vst1q_s64(at, vcvtq_s64_f64(x)); }
BCAST_INLINE void store_float64(uint64_t *at, float64x2_t x) { vst1q_u64(at, vcvtq_u64_f64(x)); }

template <class T>
BCAST_INLINE void store_four(T *at, float32x4_t x)
{
    store_float64(at, vcvt_f64_f32(vget_low_f32(x)));
    store_float64(at + 2, vcvt_high_f64_f32(x));
}

template <class T>
static void longs_of_float16(ptrdiff_t n, const void *src, void *dst)
{
    const auto *halves = static_cast<const uint16_t *>(src);
    auto *numbers = static_cast<T *>(dst);

    for (; n >= lanes; n -= lanes, halves += lanes, numbers += lanes) {
        const Floats values = values_of_float16(vld1q_u16(halves));
        store_four(numbers, values.val[0]);
        store_four(numbers + 4, values.val[1]);
    }
    for (ptrdiff_t i = 0; i < n; i++) numbers[i] = static_cast<T>(bcast_f16_of(halves[i]));
}

template <> struct Cast<float32, float16> { static constexpr bcast_cast loop = narrow_floats<ToFloat16>; };
template <> struct Cast<float64, float16> { static constexpr bcast_cast loop = narrow_float64; };
template <> struct Cast<int64, float16> { static constexpr bcast_cast loop = narrow<Long<int64_t>, ToFloat16>; };
template <> struct Cast<uint64, float16> { static constexpr bcast_cast loop = narrow<Long<uint64_t>, ToFloat16>; };

template <> struct Cast<float16, int8> { static constexpr bcast_cast loop = integers_of_float16<int8_t, int32_t>; };
template <> struct Cast<float16, uint8> { static constexpr bcast_cast loop = integers_of_float16<uint8_t, uint32_t>; };
template <> struct Cast<float16, int16> { static constexpr bcast_cast loop = integers_of_float16<int16_t, int32_t>; };
template <>
struct Cast<float16, uint16> { static constexpr bcast_cast loop = integers_of_float16<uint16_t, uint32_t>; };
template <> struct Cast<float16, int32> { static constexpr bcast_cast loop = integers_of_float16<int32_t, int32_t>; };
template <>
struct Cast<float16, uint32> { static constexpr bcast_cast loop = integers_of_float16<uint32_t, uint32_t>; };
template <> struct Cast<float16, int64> { static constexpr bcast_cast loop = longs_of_float16<int64_t>; };
template <> struct Cast<float16, uint64> { static constexpr bcast_cast loop = longs_of_float16<uint64_t>; };
template <> struct Cast<float16, float32> { static constexpr bcast_cast loop = floats_of_float16; };
template <> struct Cast<float16, float64> { static constexpr bcast_cast loop = longs_of_float16<double>; };
