/* The words of NEON. Floats are two vectors, to match one vector of halves. Their loads and stores have the length of
   registers. */

#if BCAST_HAS_FP16

constexpr int lanes = 8;
constexpr bool has_halves = true;
typedef float32x4x2_t Floats;
typedef uint32x4x2_t Mask;
typedef uint16x8_t Halves;
struct Rare {};     /* the CPU reports all that NumPy does */

BCAST_INLINE Floats load(const float *at) { return {{vld1q_f32(at), vld1q_f32(at + 4)}}; }
BCAST_INLINE void store(float *at, Floats x)
{
    vst1q_f32(at, x.val[0]);
    vst1q_f32(at + 4, x.val[1]);
}
BCAST_INLINE Floats repeated(float x) { return {{vdupq_n_f32(x), vdupq_n_f32(x)}}; }

BCAST_INLINE Floats add(Floats x, Floats y) { return {{x.val[0] + y.val[0], x.val[1] + y.val[1]}}; }
BCAST_INLINE Floats subtract(Floats x, Floats y) { return {{x.val[0] - y.val[0], x.val[1] - y.val[1]}}; }
BCAST_INLINE Floats multiply(Floats x, Floats y) { return {{x.val[0] * y.val[0], x.val[1] * y.val[1]}}; }
BCAST_INLINE Floats divide(Floats x, Floats y) { return {{x.val[0] / y.val[0], x.val[1] / y.val[1]}}; }

/* Masks. Only `equal` is a quiet comparison: quiet ones are for loops that report no errors at all. `ordered`
   compares a vector with itself. */
template <Comparison how>
BCAST_INLINE uint32x4_t compare_four(float32x4_t x, float32x4_t y)
{
    constexpr int loud = how & 0x0f;
    if constexpr (loud == equal || loud == ordered) return vceqq_f32(x, y);
    if constexpr (loud == not_equal) return vmvnq_u32(vceqq_f32(x, y));
    if constexpr (loud == less) return vcltq_f32(x, y);
    if constexpr (loud == less_equal) return vcleq_f32(x, y);
    if constexpr (loud == greater) return vcgtq_f32(x, y);
    if constexpr (loud == greater_equal) return vcgeq_f32(x, y);
    if constexpr (loud == not_less) return vmvnq_u32(vcltq_f32(x, y));
    if constexpr (loud == not_greater) return vmvnq_u32(vcgtq_f32(x, y));
    if constexpr (how == quiet_not_less_equal) return vmvnq_u32(vcleq_f32(x, y));
    if constexpr (how == quiet_not_greater_equal) return vmvnq_u32(vcgeq_f32(x, y));
}

template <Comparison how>
BCAST_INLINE Mask compare(Floats x, Floats y)
{
    return {{compare_four<how>(x.val[0], y.val[0]), compare_four<how>(x.val[1], y.val[1])}};
}

BCAST_INLINE Mask both(Mask x, Mask y) { return {{x.val[0] & y.val[0], x.val[1] & y.val[1]}}; }

BCAST_INLINE float32x4_t four_or_zero(uint32x4_t mask, float32x4_t x)
{
    return vreinterpretq_f32_u32(mask & vreinterpretq_u32_f32(x));
}

BCAST_INLINE Floats or_zero(Mask mask, Floats x)
{
    return {{four_or_zero(mask.val[0], x.val[0]), four_or_zero(mask.val[1], x.val[1])}};
}

/* A mask of halves; choices by it; and the mask as bools, in the first bytes. */
BCAST_INLINE uint16x8_t narrowed(Mask mask) { return vmovn_high_u32(vmovn_u32(mask.val[0]), mask.val[1]); }
BCAST_INLINE Halves choose(Mask mask, Halves x, Halves y) { return vbslq_u16(narrowed(mask), x, y); }
BCAST_INLINE Halves bools(Mask mask)
{
    const uint8x8_t bytes = vand_u8(vmovn_u16(narrowed(mask)), vdup_n_u8(1));
    return vreinterpretq_u16_u8(vcombine_u8(bytes, bytes));
}

/* Floats of 16 bits. */
BCAST_INLINE void store(uint16_t *at, Halves x) { vst1q_u16(at, x); }

BCAST_INLINE Rare nothing_rare() { return {}; }
BCAST_INLINE bool has_underflow(Rare) { return false; }

BCAST_INLINE Halves rounded_to_float16(Floats x, Rare *)
{
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.val[0]), x.val[1]));
}

BCAST_INLINE Floats values_of_float16(Halves x)
{
    const float16x8_t halves = vreinterpretq_f16_u16(x);
    return {{vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)}};
}

BCAST_INLINE uint32x4_t four_rounded_to_bfloat16(float32x4_t x)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(x);
    const uint32x4_t is_odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, is_odd), vdupq_n_u32(0x7fff));
    const uint32x4_t nan = vbslq_u32(vdupq_n_u32(0x80000000), bits, vdupq_n_u32(0x7fc00000));
    return vbslq_u32(vceqq_f32(x, x), rounded, nan);
}

BCAST_INLINE Halves rounded_to_bfloat16(Floats x)
{
    const uint16x4_t first = vshrn_n_u32(four_rounded_to_bfloat16(x.val[0]), 16);
    return vshrn_high_n_u32(first, four_rounded_to_bfloat16(x.val[1]), 16);
}

BCAST_INLINE Floats values_of_bfloat16(Halves x)
{
    const uint32x4_t first = vshll_n_u16(vget_low_u16(x), 16), last = vshll_high_n_u16(x, 16);
    return {{vreinterpretq_f32_u32(first), vreinterpretq_f32_u32(last)}};
}

/* Bytes. */
BCAST_INLINE Floats values_of_bytes(const uint8_t *at)
{
    const uint16x8_t words = vmovl_u8(vld1_u8(at));
    return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(words))), vcvtq_f32_u32(vmovl_high_u16(words))}};
}

#endif

/* ---- Registers of bytes ---- */

typedef uint8x16_t Bytes;

BCAST_INLINE Bytes load_register(const uint8_t *at) { return vld1q_u8(at); }
BCAST_INLINE void store_register(uint8_t *at, Bytes x) { vst1q_u8(at, x); }

/* A lane at `at`; a vector of two would have its second one `second` bytes further. */
BCAST_INLINE Bytes load_lanes(const uint8_t *at, ptrdiff_t) { return load_register(at); }

/* The bytes with some numbers, of the 16 at `window`. */
BCAST_INLINE Bytes pick(const uint8_t *window, Bytes numbers) { return vqtbl1q_u8(load_register(window), numbers); }

/* Items of `size` bytes, alternating from x and y: from the lower halves; and from the upper ones. */
template <int size>
BCAST_INLINE Bytes interleaved_low(Bytes x, Bytes y)
{
    if constexpr (size == 1)
        return vzip1q_u8(x, y);
    else if constexpr (size == 2)
        return vreinterpretq_u8_u16(vzip1q_u16(vreinterpretq_u16_u8(x), vreinterpretq_u16_u8(y)));
    else if constexpr (size == 4)
        return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y)));
    else
        return vreinterpretq_u8_u64(vzip1q_u64(vreinterpretq_u64_u8(x), vreinterpretq_u64_u8(y)));
}

template <int size>
BCAST_INLINE Bytes interleaved_high(Bytes x, Bytes y)
{
    if constexpr (size == 1)
        return vzip2q_u8(x, y);
    else if constexpr (size == 2)
        return vreinterpretq_u8_u16(vzip2q_u16(vreinterpretq_u16_u8(x), vreinterpretq_u16_u8(y)));
    else if constexpr (size == 4)
        return vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(x), vreinterpretq_u32_u8(y)));
    else
        return vreinterpretq_u8_u64(vzip2q_u64(vreinterpretq_u64_u8(x), vreinterpretq_u64_u8(y)));
}
