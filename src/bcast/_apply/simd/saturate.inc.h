/* Numbers as integers of a type that cannot hold all of them, on one target: rounded to whole numbers, ties to even,
   and clipped to the range of the type. NaN becomes 0. None of this is a floating-point error.

   `kernels.cpp` includes this file in the target's namespace, like `casts.inc.h`. */

/* A type that holds all values of a type of integers, and most bounds of others. */
template <class T> struct Wider { using Type = int64_t; };
template <> struct Wider<int8_t> { using Type = int32_t; };
template <> struct Wider<uint8_t> { using Type = int32_t; };
template <> struct Wider<int16_t> { using Type = int32_t; };
template <> struct Wider<uint16_t> { using Type = int32_t; };
template <> struct Wider<uint64_t> { using Type = uint64_t; };

/* Clip integers to the range of others, or to the range of the type of the comparison if that is narrower. */
template <Kind from, Kind to>
ON_TARGET void saturate_integers(ptrdiff_t n, const void *src, void *dst)
{
    using To = ItemOf<to>;
    using Wide = typename Wider<ItemOf<from>>::Type;
    constexpr bool least_is_held = static_cast<int64_t>(Bounds<To>::least) >= static_cast<int64_t>(Bounds<Wide>::least);
    constexpr bool most_is_held = static_cast<uint64_t>(Bounds<To>::most) <= static_cast<uint64_t>(Bounds<Wide>::most);
    constexpr Wide least = least_is_held ? static_cast<Wide>(Bounds<To>::least) : Bounds<Wide>::least;
    constexpr Wide most = most_is_held ? static_cast<Wide>(Bounds<To>::most) : Bounds<Wide>::most;
    const auto *items = static_cast<const ItemOf<from> *>(src);
    auto *integers = static_cast<To *>(dst);

    for (ptrdiff_t i = 0; i < n; i++) {
        const Wide value = static_cast<Wide>(items[i]);
        integers[i] = static_cast<To>(value < least ? least : value > most ? most : value);
    }
}

/* Clear the error of a signalling NaN. */
BCAST_INLINE void forget_invalid()
{
    if (fetestexcept(FE_INVALID)) feclearexcept(FE_INVALID);
}

BCAST_INLINE float rounded_to_even(float x) { return rintf(x); }
BCAST_INLINE double rounded_to_even(double x) { return rint(x); }

/* The type in which floats are clipped for a type of integers: it holds the bounds, and all the floats. */
template <Kind from, class To> struct CutIn { using Type = double; };
template <Kind from> struct CutIn<from, int8_t> { using Type = float; };
template <Kind from> struct CutIn<from, uint8_t> { using Type = float; };
template <Kind from> struct CutIn<from, int16_t> { using Type = float; };
template <Kind from> struct CutIn<from, uint16_t> { using Type = float; };
template <> struct CutIn<float64, int8_t> { using Type = double; };
template <> struct CutIn<float64, uint8_t> { using Type = double; };
template <> struct CutIn<float64, int16_t> { using Type = double; };
template <> struct CutIn<float64, uint16_t> { using Type = double; };

/* The integers to which compilers convert a whole vector of floats, before narrower ones of up to 32 bits. */
template <class To> struct Middle { using Type = int32_t; };
template <> struct Middle<uint32_t> { using Type = int64_t; };

/* A float as a number that is not NaN, and not below the smallest one. */
template <class Value>
BCAST_INLINE Value cut_below(Value value, Value least)
{
    const Value number = value == value ? value : 0;
    return number > least ? number : least;
}

/* Round floats to integers of up to 32 bits. */
template <Kind from, Kind to>
ON_TARGET void saturate_floats(ptrdiff_t n, const void *src, void *dst)
{
    using To = ItemOf<to>;
    using Value = typename CutIn<from, To>::Type;
    const auto *items = static_cast<const ItemOf<from> *>(src);
    auto *integers = static_cast<To *>(dst);
    const Value least = static_cast<Value>(Bounds<To>::least), most = static_cast<Value>(Bounds<To>::most);

    for (ptrdiff_t i = 0; i < n; i++) {
        const Value above = cut_below(static_cast<Value>(Number<from>::value(items[i])), least);
        const Value within = above < most ? above : most;
        integers[i] = static_cast<To>(static_cast<typename Middle<To>::Type>(rounded_to_even(within)));
    }
    forget_invalid();
}

/* To integers of 64 bits; instead of the largest one, float64 has only the next power of two. */
template <Kind from, Kind to>
ON_TARGET void saturate_floats_to_long(ptrdiff_t n, const void *src, void *dst)
{
    using To = ItemOf<to>;
    const auto *items = static_cast<const ItemOf<from> *>(src);
    auto *integers = static_cast<To *>(dst);
    const double least = static_cast<double>(Bounds<To>::least), past = static_cast<double>(Bounds<To>::most);

    for (ptrdiff_t i = 0; i < n; i++) {
        const double above = cut_below(static_cast<double>(Number<from>::value(items[i])), least);
        integers[i] = above >= past ? Bounds<To>::most : static_cast<To>(rint(above));
    }
    forget_invalid();
}

/* The conversion between two kinds; none, unless it is of real numbers to integers. */
template <Kind from, Kind to>
constexpr bcast_cast saturating_cast()
{
    if constexpr (!is_integer(to)) return nullptr;
    else if constexpr (is_integer(from)) return saturate_integers<from, to>;
    else if constexpr (!is_real_float(from)) return nullptr;
    else if constexpr (sizeof(ItemOf<to>) == 8) return saturate_floats_to_long<from, to>;
    else return saturate_floats<from, to>;
}
