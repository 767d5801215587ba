/* Vectors of any length on a target, a `Vector<Item, lanes>`, and operations on them by extensions of GCC and Clang.
   `vectors.h` includes this file in the namespace of a target, which defines the bytes of a register:
   `register_bytes`.

   A vector that fits a register is the compiler's own. Otherwise it consists of two halves, each of them a vector.
   Compilers also have vectors longer than registers, but GCC keeps these in memory. Kernels do not see the
   difference:

       Vector<double, 4>       avx2    |0   |1   |2   |3   |
                               neon    |0   |1   | |2   |3   |      low and high

   Functions get vectors by value: all of them are inlined. */

#ifdef __GNUC__

template <class Half>
struct Two {
    Half low;
    Half high;
};

template <class Item, int lanes, bool fits = (sizeof(Item) * lanes <= register_bytes)>
struct VectorOf {
    typedef Item Type __attribute__((vector_size(sizeof(Item) * lanes)));
};

template <class Item, int lanes>
struct VectorOf<Item, lanes, false> {
    using Type = Two<typename VectorOf<Item, lanes / 2>::Type>;
};

template <class Item, int lanes>
using Vector = typename VectorOf<Item, lanes>::Type;

template <class V> constexpr bool is_two = false;
template <class Half> constexpr bool is_two<Two<Half>> = true;

/* ---- Memory ---- */

template <class V>
struct __attribute__((packed, may_alias)) Unaligned {
    V value;
};

/* The vector at `at`, an unaligned address. */
template <class V>
BCAST_INLINE V load(const void *at)
{
    if constexpr (is_two<V>) {
        using Half = decltype(V::low);
        return {load<Half>(at), load<Half>(static_cast<const char *>(at) + sizeof(Half))};
    } else {
        return static_cast<const Unaligned<V> *>(at)->value;
    }
}

template <class V>
BCAST_INLINE void store(void *at, V x)
{
    if constexpr (is_two<V>) {
        store(at, x.low);
        store(static_cast<char *>(at) + sizeof x.low, x.high);
    } else {
        static_cast<Unaligned<V> *>(at)->value = x;
    }
}

/* Vector number `i` of contiguous ones. */
template <class V>
BCAST_INLINE V load_at(const void *first, ptrdiff_t i)
{
    return load<V>(static_cast<const char *>(first) + i * static_cast<ptrdiff_t>(sizeof(V)));
}

template <class V>
BCAST_INLINE void store_at(void *first, ptrdiff_t i, V x)
{
    store(static_cast<char *>(first) + i * static_cast<ptrdiff_t>(sizeof(V)), x);
}

/* ---- Arithmetic, lane by lane, which the compiler has for its own vectors ---- */

template <class Half>
BCAST_INLINE Two<Half> operator+(Two<Half> a, Two<Half> b)
{
    return {a.low + b.low, a.high + b.high};
}

template <class Half>
BCAST_INLINE Two<Half> operator-(Two<Half> a, Two<Half> b)
{
    return {a.low - b.low, a.high - b.high};
}

template <class Half>
BCAST_INLINE Two<Half> operator*(Two<Half> a, Two<Half> b)
{
    return {a.low * b.low, a.high * b.high};
}

template <class Half>
BCAST_INLINE Two<Half> operator&(Two<Half> a, Two<Half> b)
{
    return {a.low & b.low, a.high & b.high};
}

/* ---- Items ---- */

/* The sum of all items. */
template <class V>
BCAST_INLINE auto sum_of_lanes(V x)
{
    if constexpr (is_two<V>) {
        return sum_of_lanes(x.low + x.high);
    } else {
        auto sum = x[0];
        for (unsigned i = 1; i < sizeof x / sizeof sum; i++) sum += x[i];
        return sum;
    }
}

/* A number in each lane. */
template <class V>
BCAST_INLINE V all_lanes(double x)
{
    if constexpr (is_two<V>) {
        const auto half = all_lanes<decltype(V::low)>(x);
        return {half, half};
    } else {
        using Item = decltype(sum_of_lanes(V{}));
        return static_cast<Item>(x) - V{};      /* keeps the sign of a zero */
    }
}

/* The same bits as items of another type. */
template <class To, class V>
BCAST_INLINE To bits_as(V x)
{
    if constexpr (is_two<To>) return {bits_as<decltype(To::low)>(x.low), bits_as<decltype(To::low)>(x.high)};
    else return (To) x;
}

/* A bit for each byte of a mask: without an instruction for it, products gather the bits of 8 bytes. */
BCAST_INLINE uint64_t bits_of_mask(Vector<uint8_t, 16> mask)
{
    const auto words = bits_as<Vector<uint64_t, 2>>(mask) & static_cast<uint64_t>(0x0101010101010101);
    return words[0] * 0x0102040810204080 >> 56 | words[1] * 0x0102040810204080 >> 56 << 8;
}

/* In each lane, whether one of two numbers is NaN. */
template <class V>
BCAST_INLINE auto are_unordered(V a, V b)
{
    return (a != a) | (b != b);
}

/* Half number `i`: 0 or 1. */
template <class Half, class V>
BCAST_INLINE Half half_of(V x, int i)
{
    if constexpr (is_two<V>) {
        return i ? x.high : x.low;
    } else {
        Half half;
        memcpy(&half, reinterpret_cast<const char *>(&x) + i * sizeof half, sizeof half);
        return half;
    }
}

/* Lane i of a and lane j of b, of vectors with two lanes. */
template <int i, int j, class V>
BCAST_INLINE V paired(V a, V b)
{
#ifdef __clang__
    return __builtin_shufflevector(a, b, i, 2 + j);
#else
    return __builtin_shuffle(a, b, decltype(a < b){i, 2 + j});
#endif
}

/* ---- Lanes of two vectors of four: a0 a1 a2 a3 and b0 b1 b2 b3 ---- */

/* The lanes with some numbers; the lanes of b are 4 to 7. */
template <int i, int j, int k, int l, class V>
BCAST_INLINE V shuffled(V a, V b)
{
    if constexpr (is_two<V>) {
        const decltype(V::low) halves[] = {a.low, a.high, b.low, b.high};
        return {
            paired<i % 2, j % 2>(halves[i / 2], halves[j / 2]),
            paired<k % 2, l % 2>(halves[k / 2], halves[l / 2]),
        };
    } else {
#ifdef __clang__
        return __builtin_shufflevector(a, b, i, j, k, l);
#else
        return __builtin_shuffle(a, b, decltype(a < b){i, j, k, l});
#endif
    }
}

/* a0 b0 a2 b2 */
template <class V> BCAST_INLINE V even(V a, V b) { return shuffled<0, 4, 2, 6>(a, b); }

/* a1 b1 a3 b3 */
template <class V> BCAST_INLINE V odd(V a, V b) { return shuffled<1, 5, 3, 7>(a, b); }

/* a0 a1 b0 b1 */
template <class V> BCAST_INLINE V lower(V a, V b) { return shuffled<0, 1, 4, 5>(a, b); }

/* a2 a3 b2 b3 */
template <class V> BCAST_INLINE V upper(V a, V b) { return shuffled<2, 3, 6, 7>(a, b); }

#endif
