/* Conversions of numbers, on one target: to each kind from each kind. `kernels.cpp` includes this file in the target's
   namespace, and defines ON_TARGET: how functions are compiled for it.

   A plain loop converts a row of items, and compilers vectorise it. Items that are rounded to 16 bits become float32
   first, a part at a time. `Cast` has the loop for two kinds; files included after this one replace some of these
   loops. A file before it has `round_row_to_float16`. */

/* An item of a kind: one or more parts of a type. Complex numbers have two. */
template <Kind kind> struct Written { using Part = ItemOf<kind>; static constexpr int parts = 1; };
template <> struct Written<boolean> { using Part = bool; static constexpr int parts = 1; };
template <> struct Written<complex64> { using Part = float; static constexpr int parts = 2; };
template <> struct Written<complex128> { using Part = double; static constexpr int parts = 2; };

/* Convert each item separately, as C does. C does not define the result for numbers that do not fit a type of 8 or 16
   bits; compilers keep the last bits. */
template <class From, Kind to>
ON_TARGET void convert(ptrdiff_t n, const void *src, void *dst)
{
    using Part = typename Written<to>::Part;
    constexpr int parts = Written<to>::parts;
    const auto *items = static_cast<const typename From::Item *>(src);
    auto *written = static_cast<Part *>(dst);

    for (ptrdiff_t i = 0; i < n; i++) {
        written[parts * i] = static_cast<Part>(From::value(items[i]));
        if (parts == 2) written[parts * i + 1] = 0;
    }
}

/* Round float32 to 16 bits. */
struct ToBfloat16 {
    ON_TARGET BCAST_INLINE void round(ptrdiff_t n, const float *values, uint16_t *halves)
    {
        for (ptrdiff_t i = 0; i < n; i++) halves[i] = bcast_bf16_bits_of_f32(values[i]);
    }
};

struct ToFloat16 {
    ON_TARGET static void round(ptrdiff_t n, const float *values, uint16_t *halves)
    {
        round_row_to_float16(n, values, halves);
    }
};

/* Convert items to float32, in parts that stay in a first-level cache, and round these. */
template <class From, class To>
ON_TARGET void narrow(ptrdiff_t n, const void *src, void *dst)
{
    constexpr ptrdiff_t most = 256;
    const auto *items = static_cast<const typename From::Item *>(src);
    auto *halves = static_cast<uint16_t *>(dst);
    float values[most];

    for (ptrdiff_t done = 0, count; done < n; done += count) {
        count = n - done < most ? n - done : most;
        for (ptrdiff_t i = 0; i < count; i++) values[i] = static_cast<float>(From::value(items[done + i]));
        To::round(count, values, halves + done);
    }
}

template <class To>
ON_TARGET void narrow_floats(ptrdiff_t n, const void *src, void *dst)
{
    To::round(n, static_cast<const float *>(src), static_cast<uint16_t *>(dst));
}

/* Both parts of complex numbers. */
template <Kind from, Kind to>
ON_TARGET void convert_complex(ptrdiff_t n, const void *src, void *dst)
{
    convert<Number<from>, to>(2 * n, src, dst);
}

/* A float16 that is compared with 0: by its bits, as in NumPy, so that no NaN is an error. */
struct Float16Bits {
    using Item = uint16_t;

    BCAST_INLINE bool value(Item bits) { return (bits & 0x7fff) != 0; }
};

/* The conversion between two kinds. */
template <Kind from, Kind to> struct Cast { static constexpr bcast_cast loop = convert<Number<from>, to>; };
template <Kind from>
struct Cast<from, float16> { static constexpr bcast_cast loop = narrow<Number<from>, ToFloat16>; };
template <Kind from>
struct Cast<from, bfloat16> { static constexpr bcast_cast loop = narrow<Number<from>, ToBfloat16>; };

template <> struct Cast<float32, bfloat16> { static constexpr bcast_cast loop = narrow_floats<ToBfloat16>; };
template <> struct Cast<float16, boolean> { static constexpr bcast_cast loop = convert<Float16Bits, boolean>; };
template <>
struct Cast<complex64, complex128> { static constexpr bcast_cast loop = convert_complex<float32, float64>; };
template <>
struct Cast<complex128, complex64> { static constexpr bcast_cast loop = convert_complex<float64, float32>; };

/* Reverse the bytes of n units. Neighbours are exchanged, then pairs of them, then fours: compilers recognise this,
   and use byte shuffles if there are any. */
BCAST_INLINE uint16_t reversed(uint16_t x) { return static_cast<uint16_t>(x >> 8 | x << 8); }

BCAST_INLINE uint32_t reversed(uint32_t x)
{
    x = (x >> 8 & 0x00ff00ff) | (x & 0x00ff00ff) << 8;
    return (x >> 16 & 0x0000ffff) | (x & 0x0000ffff) << 16;
}

BCAST_INLINE uint64_t reversed(uint64_t x)
{
    x = (x >> 8 & 0x00ff00ff00ff00ff) | (x & 0x00ff00ff00ff00ff) << 8;
    x = (x >> 16 & 0x0000ffff0000ffff) | (x & 0x0000ffff0000ffff) << 16;
    return (x >> 32 & 0x00000000ffffffff) | (x & 0x00000000ffffffff) << 32;
}

template <class Unit>
ON_TARGET BCAST_INLINE void swap_units(ptrdiff_t n, void *items)
{
    auto *at = static_cast<uint8_t *>(items);

    for (const uint8_t *end = at + n * static_cast<ptrdiff_t>(sizeof(Unit)); at < end; at += sizeof(Unit)) {
        Unit unit;
        memcpy(&unit, at, sizeof unit);
        unit = reversed(unit);
        memcpy(at, &unit, sizeof unit);
    }
}

ON_TARGET void swap_bytes(ptrdiff_t n, int size, void *items)
{
    if (size == 2) swap_units<uint16_t>(n, items);
    else if (size == 4) swap_units<uint32_t>(n, items);
    else if (size == 8) swap_units<uint64_t>(n, items);
}
