/* The kernels of the scaled product, of `combine.h`. `target.inc.h` includes this file for each target.

   Factors of up to eight rows are multiplied as they are, by vectors of columns; their product is taken apart into a
   number and an exponent, and goes into the accumulators. Where it came out of range, or was so on the way, each of the
   factors is taken apart; four factors of float32 never do. A run is rows of eight columns, which are its streams. */

#if BCAST_VECTORS
constexpr int wide_lanes = register_bytes / 8;
using Wide = Vector<double, wide_lanes>;
using WideBits = Vector<uint64_t, wide_lanes>;
using WideIntegers = Vector<int64_t, wide_lanes>;

BCAST_INLINE WideBits bits_of(Wide x) { return bits_as<WideBits>(x); }
BCAST_INLINE WideIntegers integers_of(Wide x) { return bits_as<WideIntegers>(x); }
BCAST_INLINE Wide wide_of(WideBits bits) { return bits_as<Wide>(bits); }

/* Some factors side by side. */
template <class Item, int n = wide_lanes>
BCAST_INLINE Wide factors_at(const char *src)
{
    if constexpr (sizeof(Item) == 8) return read<Wide>(src);
    else if constexpr (n == 4) return doubles(load<Vector<Item, n>>(src));
    else return __builtin_convertvector(load<Vector<Item, n>>(src), Wide);
}

template <class Lanes>
BCAST_INLINE bool is_any(Lanes lanes)
{
    uint64_t any = 0;
    for (int i = 0; i < wide_lanes; i++) any |= static_cast<uint64_t>(lanes[i]);
    return any != 0;
}
#else
constexpr int wide_lanes = 1;
using Wide = double;
using WideBits = uint64_t;
using WideIntegers = int64_t;

BCAST_INLINE WideBits bits_of(Wide x) { return bcast_f64_bits_of(x); }
BCAST_INLINE WideIntegers integers_of(Wide x) { return static_cast<int64_t>(bcast_f64_bits_of(x)); }
BCAST_INLINE Wide wide_of(WideBits bits) { return bcast_f64_of(bits); }
BCAST_INLINE bool is_any(bool lane) { return lane; }

template <class Item>
BCAST_INLINE Wide factors_at(const char *src) { return read<Item>(src); }
#endif

constexpr uint64_t all_but_sign = 0x7fffffffffffffff;

/* Numbers from 1 to 2, of either sign, times powers of 2. */
template <class V>
struct Scaled {
    V number;
    V exponent;
};

template <class V>
BCAST_INLINE Scaled<V> scaled_product(Scaled<V> a, Scaled<V> b)
{
    const V product = a.number * b.number, one = V{} + 1, none = V{}, half = V{} + 0.5;
    const auto is_long = product * product >= 4;
    return {product * (is_long ? half : one), a.exponent + b.exponent + (is_long ? one : none)};
}

/* Floats taken apart. The number of what has no exponent is of no matter, but for its sign. */
BCAST_INLINE Scaled<Wide> scaled(Wide x)
{
    constexpr int64_t least_normal = 0x0010000000000000, infinity = 0x7ff0000000000000;
    constexpr uint64_t all_but_exponent = 0x800fffffffffffff, one = 0x3ff0000000000000, two_to_52 = 0x4330000000000000;
    const Wide zero = Wide{}, unit = zero + 1, up = zero + 0x1p64, above = zero + 64, nothing = zero - __builtin_inf();
    const Wide magnitude = wide_of(bits_of(x) & all_but_sign);
    const WideIntegers size = integers_of(magnitude);

    const auto is_small = size < least_normal;      /* or 0 */
    const WideBits bits = bits_of(x * (is_small ? up : unit));
    const Wide field = wide_of((bits >> 52 & static_cast<uint64_t>(0x7ff)) | two_to_52) - 0x1p52;     /* as a number */
    Wide exponent = field - 1023 - (is_small ? above : zero);
    exponent = size == 0 ? nothing : exponent;
    exponent = size >= infinity ? magnitude : exponent;
    return {wide_of((bits & all_but_exponent) | one), exponent};
}

/* The product of `count` factors, some bytes apart, and of what is before. */
BCAST_INLINE Scaled<Wide> times_doubles(Scaled<Wide> before, const char *src, ptrdiff_t stride, ptrdiff_t count)
{
    constexpr int64_t least_normal = 0x0010000000000000, most = 0x7fefffffffffffff;
    Wide product = read<Wide>(src), least = wide_of(bits_of(product) & all_but_sign);

    for (ptrdiff_t i = 1; i < count; i++) {
        product = product * read<Wide>(src + i * stride);
        const Wide magnitude = wide_of(bits_of(product) & all_but_sign);
        least = magnitude < least ? magnitude : least;
    }
    const WideIntegers size = integers_of(wide_of(bits_of(product) & all_but_sign));
    const auto is_out_of_range = (integers_of(least) < least_normal) | (size > most);
    const Scaled<Wide> at_once = scaled_product(before, scaled(product));
    if (!is_any(is_out_of_range)) return at_once;

    Scaled<Wide> apart = before;
    for (ptrdiff_t i = 0; i < count; i++) apart = scaled_product(apart, scaled(read<Wide>(src + i * stride)));
    return {     /* each lane for itself: targets have different neighbours in a vector */
        is_out_of_range ? apart.number : at_once.number, is_out_of_range ? apart.exponent : at_once.exponent};
}

BCAST_INLINE Scaled<Wide> times_floats(Scaled<Wide> before, const char *src, ptrdiff_t stride, ptrdiff_t count)
{
    for (ptrdiff_t first = 0; first < count; first += 4) {
        const ptrdiff_t end = count - first < 4 ? count : first + 4;
        Wide product = factors_at<float>(src + first * stride);
        for (ptrdiff_t i = first + 1; i < end; i++) product = product * factors_at<float>(src + i * stride);
        before = scaled_product(before, scaled(product));
    }
    return before;
}

template <class Item>
BCAST_INLINE Scaled<Wide> times_factors(Scaled<Wide> before, const char *src, ptrdiff_t stride, ptrdiff_t count)
{
    if constexpr (sizeof(Item) == 8) return times_doubles(before, src, stride, count);
    else return times_floats(before, src, stride, count);
}

/* The same for columns that fill no vector: of `count` rows, at most eight. */
template <class Item>
BCAST_APART void scale_last_columns(
    bool adds, double *numbers, double *exponents, const char *src, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t width)
{
    Item factors[8][wide_lanes];
    double before[2][wide_lanes];

    for (int i = 0; i < wide_lanes; i++) {
        before[0][i] = adds && i < width ? numbers[i] : 1;
        before[1][i] = adds && i < width ? exponents[i] : 0;
    }
    for (ptrdiff_t row = 0; row < count; row++)
        for (int i = 0; i < wide_lanes; i++)
            factors[row][i] = i < width ? read<Item>(src + row * stride + i * static_cast<int>(sizeof(Item))) : 1;

    const auto product = times_factors<Item>(
        {read<Wide>(reinterpret_cast<char *>(before[0])), read<Wide>(reinterpret_cast<char *>(before[1]))},
        reinterpret_cast<char *>(factors), sizeof factors[0], count);
    write<Wide>(reinterpret_cast<char *>(before[0]), product.number);
    write<Wide>(reinterpret_cast<char *>(before[1]), product.exponent);
    memcpy(numbers, before[0], 8 * width);
    memcpy(exponents, before[1], 8 * width);
}

/* Multiply a row of accumulators by those of `count` rows of factors, at most eight, or set them. */
template <class Item>
BCAST_INLINE void scale_some_rows(
    bool adds, double *numbers, double *exponents, const char *src, ptrdiff_t stride, ptrdiff_t count, ptrdiff_t width)
{
    constexpr ptrdiff_t size = sizeof(Item);
    ptrdiff_t at = 0;

    for (; at + wide_lanes <= width; at += wide_lanes) {
        char *number = reinterpret_cast<char *>(numbers + at), *exponent = reinterpret_cast<char *>(exponents + at);
        Scaled<Wide> before = {Wide{} + 1, Wide{}};
        if (adds) before = {read<Wide>(number), read<Wide>(exponent)};
        const auto product = times_factors<Item>(before, src + size * at, stride, count);
        write<Wide>(number, product.number);
        write<Wide>(exponent, product.exponent);
    }
    if (at < width)
        scale_last_columns<Item>(
            adds, numbers + at, exponents + at, src + size * at, stride, count, width - at);
}

template <class Item>
BCAST_APART int scale_rows(const bcast_term_rows *all, const bcast_sink *dst)
{
    const bcast_term_rows rows = *all;
    double *numbers = reinterpret_cast<double *>(dst->sum), *exponents = reinterpret_cast<double *>(dst->error);
    bool adds = dst->mode == BCAST_ADD;

    for (ptrdiff_t turn = 0; turn < rows.turns; turn++, adds = true) {
        const char *src = rows.src + turn * rows.advance;
        const ptrdiff_t first = rows.rows < 4 ? rows.rows : 4;
        scale_some_rows<Item>(adds, numbers, exponents, src, rows.stride, first, rows.width);
        if (rows.rows > 4)
            scale_some_rows<Item>(
                true, numbers, exponents, src + rows.half_stride, rows.stride, rows.rows - 4, rows.width);
    }
    return 0;
}

BCAST_INLINE Scaled<double> scaled_at(const bcast_sink *sink, ptrdiff_t i)
{
    return {read<double>(sink->sum + 8 * i), read<double>(sink->error + 8 * i)};
}

BCAST_INLINE void write_scaled(const bcast_sink *sink, ptrdiff_t i, Scaled<double> product)
{
    write<double>(sink->sum + 8 * i, product.number);
    write<double>(sink->error + 8 * i, product.exponent);
}

template <class Item>
BCAST_APART int scale_runs(const bcast_term_runs *all, const bcast_sink *dst)
{
    constexpr ptrdiff_t streams = 8, row_bytes = sizeof(Item) * streams;
    const bcast_term_runs runs = *all;
    const bool adds = dst->mode == BCAST_ADD;
    double numbers[streams], exponents[streams];

    for (ptrdiff_t run = 0; run < runs.count; run++) {
        const char *src = runs.src + run * runs.stride;
        ptrdiff_t rows = runs.length / streams;

        for (ptrdiff_t k = 0; k < streams; k++) {
            numbers[k] = 1;
            exponents[k] = 0;
        }
        for (ptrdiff_t count; rows > 0; rows -= count, src += count * row_bytes) {
            count = rows < 8 ? rows : 8;
            scale_some_rows<Item>(true, numbers, exponents, src, row_bytes, count, streams);
        }
        scale_some_rows<Item>(true, numbers, exponents, src, row_bytes, 1, runs.length % streams);

        for (ptrdiff_t k = 0; k < runs.interleave; k++) {
            Scaled<double> product = {numbers[k], exponents[k]};
            for (ptrdiff_t i = k + runs.interleave; i < streams; i += runs.interleave)
                product = scaled_product(product, {numbers[i], exponents[i]});
            const ptrdiff_t to = run * runs.interleave + k;
            write_scaled(dst, to, adds ? scaled_product(scaled_at(dst, to), product) : product);
        }
    }
    return 0;
}

inline void combine_scaled(const bcast_sink *dst, const bcast_sink *src, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) write_scaled(dst, i, scaled_product(scaled_at(dst, i), scaled_at(src, i)));
}

inline void fold_scaled(const bcast_sink *all, ptrdiff_t groups, ptrdiff_t length, ptrdiff_t n)
{
    for (ptrdiff_t group = 0; group < groups; group++)
        for (ptrdiff_t k = 0; k < n; k++) {
            const ptrdiff_t first = group * length * n + k;
            Scaled<double> product = scaled_at(all, first);
            for (ptrdiff_t i = 1; i < length; i++) product = scaled_product(product, scaled_at(all, first + i * n));
            write_scaled(all, group * n + k, product);
        }
}

/* Factors of all other dtypes are packed as float64. */
template <int dtype>
constexpr bcast_sum_kernels scaled_kernels_of()
{
    bcast_sum_kernels kernels = {};
    if constexpr (dtype == BCAST_FLOAT32 || dtype == BCAST_FLOAT64) {
        using Item = typename ProductOf<dtype>::Type::Item;
        kernels.lanes = 4;
        kernels.reduce_rows = scale_rows<Item>;
        kernels.reduce_runs = scale_runs<Item>;
        kernels.combine = combine_scaled;
        kernels.fold = fold_scaled;
    }
    return kernels;
}

constexpr bcast_sum_kernels scaled_kernels_by_dtype[] = {BCAST_DTYPES(BCAST_SCALED_KERNELS)};
